// A worker of the tests: tiny model, client and scheduler against a real server.
#ifndef QUIRE_TESTS_WORKER_INTEGRATION_WORKER_FIXTURE_H_
#define QUIRE_TESTS_WORKER_INTEGRATION_WORKER_FIXTURE_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/server_process.h"
#include "worker/client/cache_client.h"
#include "worker/model/linear.h"
#include "worker/model/transformer.h"
#include "worker/runtime/executor.h"
#include "worker/runtime/local_executor.h"
#include "worker/runtime/runner.h"
#include "worker/runtime/scheduler.h"
#include "worker/runtime/verifier.h"
#include "worker/runtime/workload.h"

namespace quire::runtime {

struct WorkerSetup {
  std::string server{};
  std::string name = "w";
  client::StepMode mode = client::StepMode::kStream;
  model::ModelConfig model{};
  SchedulerOptions scheduler{};
  WorkloadOptions load{};
  // Puts something between scheduler and model; absent: nothing.
  std::function<std::unique_ptr<Executor>(std::unique_ptr<Executor>)> wrap{};
};

// Two layers, 64 KiB per block of 16 tokens.
inline WorkerSetup SmallSetup(const ServerProcess& server) {
  WorkerSetup setup;
  setup.server = server.address();
  setup.model.layers = 2;
  setup.model.kv_heads = 4;
  setup.model.vocabulary = 128;
  setup.scheduler.record_logits = true;
  setup.load.vocabulary = 128;
  setup.load.users = 4;
  setup.load.prompt_tokens = 48;
  setup.load.new_tokens = 12;
  setup.load.temperature = 0.8f;
  return setup;
}

class TestWorker {
 public:
  explicit TestWorker(const WorkerSetup& setup) : setup_(setup) {
    model::SetMatrixThreads(1);
    model::SeededWeights weights(4);
    model_ = *model::Transformer::Create(setup.model, weights);
    client::ClientOptions options;
    options.server = setup.server;
    options.worker = setup.name;
    options.mode = setup.mode;
    options.model_fingerprint = model_->fingerprint();
    options.layout.emplace();
    options.layout->dtype = static_cast<client::Dtype>(setup.model.kv_dtype);
    options.layout->kv_heads = static_cast<uint32_t>(setup.model.kv_heads);
    options.layout->head_dim = static_cast<uint32_t>(setup.model.head_dim);
    for (int32_t i = 0; i < setup.model.layers; ++i) {
      options.layout->layer_windows.push_back(setup.model.window(i));
    }
    auto client = client::CacheClient::Attach(options);
    EXPECT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
    setup_.load.max_sequence_tokens = client_->pool().max_sequence_tokens;
    std::unique_ptr<Executor> executor =
        std::make_unique<LocalExecutor>(*model_, model::KernelChoice());
    if (setup.wrap) executor = setup.wrap(std::move(executor));
    auto scheduler = Scheduler::Create(*client_, std::move(executor), setup.scheduler, clock_);
    EXPECT_TRUE(scheduler.ok()) << scheduler.status();
    scheduler_ = *std::move(scheduler);
  }

  // Runs so many requests of a workload to their end.
  std::vector<RequestResult> Run(Workload& workload, uint64_t requests,
                                 const Progress& progress = nullptr) {
    auto outcome =
        RunWorkload(*scheduler_, workload, {.requests = requests}, true, clock_, progress);
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
    return std::move(outcome.results);
  }

  VerifyReport Verify(const std::vector<RequestResult>& results) {
    Verifier verifier(*model_, VerifyTolerance(setup_.model.kv_dtype));
    for (const RequestResult& result : results) {
      EXPECT_TRUE(result.status.ok()) << result.status;
      EXPECT_TRUE(verifier.Check(result).ok());
    }
    return verifier.report();
  }

  const WorkloadOptions& load() const { return setup_.load; }

  client::CacheClient& client() { return *client_; }

  Scheduler& scheduler() { return *scheduler_; }

  const SchedulerStats& stats() const { return scheduler_->stats(); }

 private:
  WorkerSetup setup_;
  SystemClock clock_;
  std::unique_ptr<model::Transformer> model_;
  std::unique_ptr<client::CacheClient> client_;
  std::unique_ptr<Scheduler> scheduler_;
};

}  // namespace quire::runtime

#endif  // QUIRE_TESTS_WORKER_INTEGRATION_WORKER_FIXTURE_H_
