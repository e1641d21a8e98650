// How long a worker waits for the server per token, with slots ahead and without.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/measure.h"
#include "tests/bench/socket_servers.h"
#include "tests/bench/socket_workloads.h"
#include "tests/bench/wire.h"
#include "worker/client/cache_client.h"

namespace quire::bench {
namespace {

constexpr uint32_t kSequences = 256;
constexpr uint32_t kPromptTokens = 100;
// What one launch takes on the device; the host is idle meanwhile.
constexpr auto kLaunch = std::chrono::milliseconds(2);

template <typename T>
T Must(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "quire-bench: %s\n", std::string(value.status().message()).c_str());
  std::exit(2);
}

class LookAheadWorker {
 public:
  LookAheadWorker(const std::string& server, const std::string& name, uint32_t ahead)
      : ahead_(ahead), lengths_(kSequences, kPromptTokens) {
    client_ = Must(client::CacheClient::Attach(BenchClientOptions(server, name)));
    // Nothing is computed here, so there is nothing to copy.
    client_->set_copy_executor([](auto) { return absl::OkStatus(); });
    client::Step step;
    for (uint32_t i = 0; i < kSequences; ++i) {
      step.Begin({.sequence = i + 1, .tokens = std::vector<client::TokenId>(kPromptTokens, i)});
    }
    Must(client_->Submit(std::move(step)));
    Must(client_->Wait());
  }

  // One decode step. Microseconds between wanting to launch and being able to, apart from building
  // and sending the step; without slots ahead, sending counts too, for the launch waits for it.
  double BlockedInStep() {
    client::Step step = Advances();
    const double start = WallSeconds();
    const client::StepNumber number = Must(client_->Submit(std::move(step)));
    double blocked = 0;
    if (ahead_ == 0) {
      Must(client_->Wait());
      blocked = 1e6 * (WallSeconds() - start);
    }
    std::this_thread::sleep_for(kLaunch);
    if (ahead_ > 0) blocked = WaitAfterLaunch();
    if (!client_->Complete(number).ok()) std::abort();
    return blocked;
  }

 private:
  client::Step Advances() {
    client::Step step;
    const client::TokenId token = 7;
    for (uint32_t i = 0; i < kSequences; ++i) {
      step.Advance(i + 1, lengths_[i]++, {&token, 1}, ahead_);
    }
    return step;
  }

  // An answer that has arrived is applied without waiting.
  double WaitAfterLaunch() {
    if (Must(client_->Poll()).has_value()) return 0;
    const double start = WallSeconds();
    Must(client_->Wait());
    return 1e6 * (WallSeconds() - start);
  }

  const uint32_t ahead_;
  std::vector<uint32_t> lengths_;
  std::unique_ptr<client::CacheClient> client_;
};

}  // namespace

void BenchLookAhead(Report& report, bool small) {
  const SocketServers servers(small ? 8192 : 65536, 8192);
  LookAheadWorker ahead(servers.QuireAddress(false), "ahead", 8);
  LookAheadWorker waits(servers.QuireAddress(false), "waits", 0);
  std::vector<double> with;
  std::vector<double> without;
  for (int step = 0; step < (small ? 10 : 500); ++step) {
    with.push_back(ahead.BlockedInStep() / kSequences);
    without.push_back(waits.BlockedInStep() / kSequences);
  }
  using Goal = std::optional<double>;
  report.Add({"worker/blocked_per_token/look_ahead", Median(with), "us", small ? Goal() : Goal(0)});
  report.Add({"worker/blocked_per_token/look_ahead/p99", Quantile(with, 0.99), "us", {}});
  report.Add({"worker/blocked_per_token/no_look_ahead", Median(without), "us", {}});
}

}  // namespace quire::bench
