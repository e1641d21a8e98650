// Continuous batching over block tables that a server hands out.
//
//   auto scheduler = Scheduler::Create(client, model, options, clock);
//   (*scheduler)->Add(request);
//   while (!(*scheduler)->idle()) {
//     (*scheduler)->RunOnce();
//     for (RequestResult& result : (*scheduler)->TakeResults()) ...
//   }
#ifndef QUIRE_WORKER_RUNTIME_SCHEDULER_H_
#define QUIRE_WORKER_RUNTIME_SCHEDULER_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/client/cache_client.h"
#include "worker/model/transformer.h"
#include "worker/runtime/executor.h"
#include "worker/runtime/fruitless_leases.h"
#include "worker/runtime/launch_queue.h"
#include "worker/runtime/planner.h"
#include "worker/runtime/scheduler_options.h"

namespace quire::runtime {

// Each round applies the answers that are there, sends one step, and launches what earlier answers
// hold slots for, so that decoding does not wait for the server. With options.lag, launches are
// queued before the values that earlier ones sample are known. A step is complete once all that was
// queued when its answer was applied has run.
//
// Shortage preempts the youngest request; a lost lease or a restarted server sends all requests
// back to the queue, and a server that drains keeps new ones there. Either way the text stays the
// same: everything is computed again from the tokens. Not thread-safe. Client, model and clock must
// outlive it.
class Scheduler {
 public:
  static absl::StatusOr<std::unique_ptr<Scheduler>> Create(client::CacheClient& client,
                                                           std::unique_ptr<Executor> executor,
                                                           const SchedulerOptions& options,
                                                           const Clock& clock);
  // With the whole model in this process.
  static absl::StatusOr<std::unique_ptr<Scheduler>> Create(client::CacheClient& client,
                                                           model::Transformer& model,
                                                           const SchedulerOptions& options,
                                                           const Clock& clock);

  void Add(Request request);

  // Called when a request's first begin has been answered: it holds its prompt's blocks, or the
  // server drains and they are of no use.
  void set_on_begun(std::function<void(const Request&)> callback) {
    on_begun_ = std::move(callback);
  }

  // Whether only what runs is to be finished: less is tried for it.
  void set_ending(bool ending) { leases_.set_ending(ending); }

  // One round. An error is final: the server cannot be attached to any more, leases end before
  // anything is computed under them, or the model failed.
  absl::Status RunOnce();

  // Results since the last call, failed requests included.
  std::vector<RequestResult> TakeResults();

  // No request is left and the server knows that everything is complete.
  bool idle() const;

  size_t unfinished() const { return work_.running.size() + work_.waiting.size(); }

  const SchedulerStats& stats() const { return stats_; }

  const client::PoolCounts& pool_counts() const { return pool_counts_; }

 private:
  Scheduler(client::CacheClient& client, std::unique_ptr<Executor> executor,
            const SchedulerOptions& options, const Clock& clock);

  struct Unreported {
    client::StepNumber step = 0;
    uint64_t marker = 0;
  };

  // Where waiting counts now.
  Duration& WaitingPlace();

  // Makes a call to the server and counts its time.
  template <typename Call>
  auto Blocked(Duration& place, Call call) {
    const TimePoint start = clock_.Now();
    auto result = call();
    if (unfinished() > 0) place += clock_.Now() - start;
    return result;
  }

  absl::Status CopyBlocks(std::span<const client::CopyOrder> orders);

  // Rounds.
  absl::Status Round();
  absl::Status ApplyArrived();
  absl::Status WaitForAnswer();
  absl::Status Send(Plan& plan);
  absl::Status AskWhetherItAnswers();
  absl::Status Idle();

  // Launches.
  absl::Status Launch(Plan& plan);
  std::unique_ptr<LaunchJob> MakeJob(Plan& plan);
  void AddRows(const PlannedRows& planned, LaunchJob& job);
  // `row`: the one behind which a token is chosen.
  void AddChoice(const PlannedRows& planned, int32_t row, LaunchJob& job);
  absl::Status DeliverFinished();
  // False: the oldest launch has not finished, or there is none.
  absl::StatusOr<bool> DeliverNext(bool wait);
  void ReportPassed();
  void Deliver(const LaunchJob& job);
  void DeliverRows(const PlannedRows& planned, std::span<const float> logits);

  // Answers.
  void OnApplied(const client::AppliedStep& applied);
  void OnAnswer(const Issued& issued, const client::StepAnswer& answer);
  void OnBegun(const Issued& issued, const client::BeginResult& result);
  void OnBeginFailed(const Issued& issued, const Error& error);
  void WaitForSuccessor(const std::shared_ptr<RequestRun>& run);
  void OnGrown(const Issued& issued, const client::OperationFailure* failure);
  void OnNotice(const client::SequenceNotice& notice);
  void CountEvictions(const client::StepAnswer& answer);

  // Requests.
  void CollectFinished();
  void ReleaseBranch(const std::shared_ptr<RequestRun>& run, Branch& branch);
  void PutBack(const std::shared_ptr<RequestRun>& run);
  void SendBack(const std::shared_ptr<RequestRun>& run);
  void Preempt(const std::shared_ptr<RequestRun>& run);
  void RelieveShortage();
  void Abandon(const std::shared_ptr<RequestRun>& run, const absl::Status& status);
  absl::Status StartOver(const absl::Status& cause);
  absl::Status AttachAgain(const absl::Status& cause);

  client::CacheClient& client_;
  const std::unique_ptr<Executor> executor_;
  LaunchQueue queue_;
  const SchedulerOptions options_;
  const Clock& clock_;
  std::function<void(const Request&)> on_begun_;
  SchedulerStats stats_;
  Planner planner_;
  Work work_;
  FruitlessLeases leases_;
  std::map<client::StepNumber, std::vector<Issued>> issued_;
  // Applied steps whose markers have not been passed.
  std::deque<Unreported> unreported_;
  std::vector<RequestResult> results_;
  client::PoolCounts pool_counts_;
  bool pool_counts_known_ = false;
  // Finishes that are sent and not answered: their blocks are about to come back.
  uint32_t releases_in_flight_ = 0;
  // Since when no request can begin.
  TimePoint stuck_since_ = TimePoint::max();
  // Answers in a row that let nothing grow, while nothing of this worker was incomplete; and
  // whether the one at hand is such.
  uint32_t refused_answers_ = 0;
  bool refused_ = false;
};

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_SCHEDULER_H_
