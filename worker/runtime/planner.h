// From the state of all branches to the next step and launch.
#ifndef QUIRE_WORKER_RUNTIME_PLANNER_H_
#define QUIRE_WORKER_RUNTIME_PLANNER_H_

#include <deque>
#include <memory>
#include <vector>

#include "worker/client/attachment.h"
#include "worker/client/block_tables.h"
#include "worker/runtime/issued.h"
#include "worker/runtime/scheduler_options.h"

namespace quire::runtime {

// A sequence to be ended in the next step. What was computed is committed first, so that others
// find it.
struct Release {
  std::shared_ptr<RequestRun> run;
  client::SequenceHandle handle = 0;
  uint32_t entered = 0;
  uint32_t computed = 0;
  uint32_t committed = 0;
};

// What the planner works on; owned by the scheduler.
struct Work {
  // Begun requests, oldest first.
  std::vector<std::shared_ptr<RequestRun>> running;
  // Requests without a sequence, next first.
  std::deque<std::shared_ptr<RequestRun>> waiting;
  std::vector<Release> releases;
  client::SequenceHandle next_handle = 1;
  // No begin before this; no growth of a stalled branch before the other.
  TimePoint begin_at{};
  TimePoint grow_at{};
};

// The rule that keeps pipelined steps safe: a token is entered only when an applied answer already
// holds its slot, so that an advance can never fail to enter it and every start length is certain.
// Growth that can fail (begin, fork, extend of a prompt) is unanswered at most once per branch, and
// nothing else is sent for that branch meanwhile. Not thread-safe.
class Planner {
 public:
  Planner(const SchedulerOptions& options, const client::PoolInfo& pool,
          const client::BlockTables& tables, SchedulerStats& stats);

  // Changes branches to what they are once the step is sent. Must be sent if it is not empty.
  Plan MakePlan(Work& work, TimePoint now);

 private:
  void AddReleases(Work& work, Plan& plan) const;
  void AddForks(Work& work, Plan& plan);
  void AddForksOf(Work& work, const std::shared_ptr<RequestRun>& run, Branch& parent, Plan& plan);
  bool ClaimCovers(const RequestRun& run, const Branch& branch) const;
  void PlanBranch(const std::shared_ptr<RequestRun>& run, Branch& branch, const Work& work,
                  TimePoint now, Plan& plan);
  void Grow(const std::shared_ptr<RequestRun>& run, Branch& branch, uint32_t reserved,
            const Work& work, TimePoint now, Plan& plan) const;
  void PlanPrefill(const std::shared_ptr<RequestRun>& run, Branch& branch, uint32_t length,
                   Plan& plan);
  bool MayRunAhead(const RequestRun& run, const Branch& branch) const;
  void PlanDecode(const std::shared_ptr<RequestRun>& run, Branch& branch, uint32_t reserved,
                  Plan& plan);
  void Enter(const std::shared_ptr<RequestRun>& run, Branch& branch, Plan& plan) const;
  void AddBegins(Work& work, TimePoint now, Plan& plan);
  void AddBegin(Work& work, const std::shared_ptr<RequestRun>& run, Branch& branch, Plan& plan);
  uint32_t WantedSlots(const Branch& branch, uint32_t reserved) const;
  uint32_t Limit(uint64_t slots) const;

  const SchedulerOptions options_;
  const client::PoolInfo& pool_;
  const client::BlockTables& tables_;
  SchedulerStats& stats_;
  const uint32_t ahead_;
  uint32_t budget_ = 0;
};

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_PLANNER_H_
