#include "worker/runtime/planner.h"

#include <algorithm>
#include <utility>

#include "worker/runtime/drafter.h"

namespace quire::runtime {
namespace {

bool HasStalled(const Work& work) {
  for (const auto& run : work.running) {
    for (const auto& branch : run->branches()) {
      if (branch->stalled) return true;
    }
  }
  return false;
}

uint32_t CountSequences(const Work& work) {
  uint32_t count = 0;
  for (const auto& run : work.running) {
    for (const auto& branch : run->branches()) count += branch->has_sequence() ? 1 : 0;
  }
  return count;
}

}  // namespace

Planner::Planner(const SchedulerOptions& options, const client::PoolInfo& pool,
                 const client::BlockTables& tables, SchedulerStats& stats)
    : options_(options),
      pool_(pool),
      tables_(tables),
      stats_(stats),
      ahead_(LookAhead(options.drafts, options.lag, options.steps_in_flight)) {}

Plan Planner::MakePlan(Work& work, TimePoint now) {
  Plan plan;
  budget_ = options_.max_batch_tokens;
  AddReleases(work, plan);
  AddForks(work, plan);
  // Decoding sequences first: they are short and somebody waits for each of their tokens.
  for (const bool prefill : {false, true}) {
    for (const auto& run : work.running) {
      for (const auto& branch : run->branches()) {
        if ((branch->computed < branch->given) != prefill) continue;
        PlanBranch(run, *branch, work, now, plan);
      }
    }
  }
  for (const auto& run : work.running) {
    for (const auto& branch : run->branches()) branch->forked_now = false;
  }
  AddBegins(work, now, plan);
  return plan;
}

void Planner::AddReleases(Work& work, Plan& plan) const {
  for (Release& release : work.releases) {
    const uint32_t computed = std::min(release.computed, release.entered);
    if (computed > release.committed) {
      plan.step.Commit(release.handle, release.entered, computed);
    }
    const client::OperationId id = plan.step.Finish(release.handle);
    plan.issued.push_back(
        {IssuedKind::kRelease, id, std::move(release.run), nullptr, release.handle});
  }
  work.releases.clear();
}

void Planner::AddForks(Work& work, Plan& plan) {
  for (const auto& run : work.running) {
    for (size_t i = 0; i < run->branches().size(); ++i) {
      AddForksOf(work, run, *run->branches()[i], plan);
    }
  }
}

// A claim is for as many sequences as the request is wide. Those that a search drops meanwhile give
// theirs back, and a branch that follows them begins with a claim of its own.
bool Planner::ClaimCovers(const RequestRun& run, const Branch& branch) const {
  if (options_.admission != Admission::kGuaranteed) return true;
  const auto& branches = run.branches();
  const size_t claimed = std::min<size_t>(run.request().width, branches.size());
  return std::any_of(branches.begin(), branches.begin() + static_cast<std::ptrdiff_t>(claimed),
                     [&branch](const auto& other) { return other.get() == &branch; });
}

void Planner::AddForksOf(Work& work, const std::shared_ptr<RequestRun>& run, Branch& parent,
                         Plan& plan) {
  std::vector<Branch*> children;
  std::vector<client::SequenceHandle> handles;
  for (const auto& branch : run->branches()) {
    if (branch->state != BranchState::kForking || branch->parent != &parent) continue;
    if (branch->has_sequence()) continue;
    const bool covered = ClaimCovers(*run, *branch);
    if (covered && parent.growing) {
      // Had it gone on meanwhile, the child could only begin, beyond the claim.
      parent.forked_now = options_.admission == Admission::kGuaranteed;
      continue;
    }
    const bool possible = covered && parent.state == BranchState::kActive &&
                          parent.computed == parent.entered &&
                          branch->tokens.size() == parent.entered + 1;
    if (!possible) {
      branch->Reset();
      continue;
    }
    branch->handle = work.next_handle++;
    children.push_back(branch.get());
    handles.push_back(branch->handle);
  }
  if (children.empty()) return;
  const uint32_t length = parent.entered;
  const client::OperationId fork = plan.step.Fork(parent.handle, length, handles);
  parent.committed = length;
  parent.forked_now = true;
  for (Branch* child : children) {
    child->entered = child->computed = child->committed = length;
    child->asked_slots = Limit(uint64_t{length} + 1 + ahead_);
    child->growing = true;
    plan.issued.push_back({IssuedKind::kFork, fork, run, child, child->handle});
    const client::OperationId grow = plan.step.Extend(child->handle, length, child->asked_slots);
    plan.issued.push_back({IssuedKind::kGrow, grow, run, child, child->handle});
  }
  stats_.forks += children.size();
}

void Planner::PlanBranch(const std::shared_ptr<RequestRun>& run, Branch& branch, const Work& work,
                         TimePoint now, Plan& plan) {
  if (branch.state != BranchState::kActive || branch.forked_now) return;
  const client::SequenceState* state = tables_.Find(branch.handle);
  if (state == nullptr) return;
  const uint32_t reserved = state->reserved;
  if (branch.computed < branch.given) {
    const uint32_t length = state->length;
    PlanPrefill(run, branch, length, plan);
  } else if (branch.pending() > 0 || branch.choosing > 0) {
    PlanDecode(run, branch, reserved, plan);
  }
  Grow(run, branch, reserved, work, now, plan);
}

// Slots to ask for now; 0: enough are held or asked for.
uint32_t Planner::WantedSlots(const Branch& branch, uint32_t reserved) const {
  uint32_t wanted = 0;
  if (branch.entered < branch.given) {
    const uint64_t next = uint64_t{branch.computed} + 2 * options_.chunk_tokens;
    wanted = next < branch.given ? static_cast<uint32_t>(next)
                                 : Limit(uint64_t{branch.given} + 1 + ahead_);
  } else if (branch.entered == branch.given || reserved < branch.tokens.size()) {
    wanted = Limit(uint64_t{branch.tokens.size()} + 1 + ahead_);
  }
  return wanted > branch.asked_slots ? wanted : 0;
}

void Planner::Grow(const std::shared_ptr<RequestRun>& run, Branch& branch, uint32_t reserved,
                   const Work& work, TimePoint now, Plan& plan) const {
  if (branch.growing || (branch.stalled && now < work.grow_at)) return;
  const uint32_t wanted = WantedSlots(branch, reserved);
  if (wanted == 0) return;
  // Rows planned for this step are launched after it is sent, so they are not claimed yet.
  const uint32_t computed = std::min(branch.computed, branch.entered);
  if (computed > branch.committed) {
    plan.step.Commit(branch.handle, branch.entered, computed);
    branch.committed = computed;
  }
  const client::OperationId id = plan.step.Extend(branch.handle, branch.entered, wanted);
  branch.asked_slots = wanted;
  branch.growing = true;
  plan.issued.push_back({IssuedKind::kGrow, id, run, &branch, branch.handle});
}

void Planner::PlanPrefill(const std::shared_ptr<RequestRun>& run, Branch& branch, uint32_t length,
                          Plan& plan) {
  const uint32_t end = std::min(length, branch.given);
  if (end <= branch.computed) return;
  const uint32_t rows = std::min({end - branch.computed, options_.chunk_tokens, budget_});
  if (rows == 0) return;
  budget_ -= rows;
  plan.rows.push_back({.run = run,
                       .branch = &branch,
                       .rows = rows,
                       .drafts = {},
                       .wants_logits = branch.computed + rows == branch.tokens.size(),
                       .handle = branch.handle});
}

// A launch with drafts gains more tokens than one of an unknown token gains time: a branch whose
// text proposes some waits for its token. So whether drafts are used does not depend on how fast
// launches come back.
bool Planner::MayRunAhead(const RequestRun& run, const Branch& branch) const {
  if (branch.drafting || !run.may_run_ahead()) return false;
  return options_.drafts == 0 || LookUpDrafts(branch.tokens, 1).empty();
}

void Planner::PlanDecode(const std::shared_ptr<RequestRun>& run, Branch& branch, uint32_t reserved,
                         Plan& plan) {
  const auto known = static_cast<uint32_t>(branch.tokens.size());
  const uint32_t unknown = branch.choosing;
  if (unknown > 0 && !MayRunAhead(*run, branch)) return;
  if (unknown >= run->remaining(branch)) return;
  if (reserved < known + unknown) {
    ++stats_.launch_waits;
    return;
  }
  const uint32_t own_rows = unknown > 0 ? 1 : branch.pending();
  if (budget_ < own_rows) return;
  std::vector<TokenId> drafts;
  if (unknown == 0 && options_.drafts > 0 && run->may_draft()) {
    const uint32_t most = std::min({options_.drafts, reserved - known, budget_ - own_rows});
    drafts = LookUpDrafts(branch.tokens, most);
  }
  Enter(run, branch, plan);
  const uint32_t rows = own_rows + static_cast<uint32_t>(drafts.size());
  budget_ -= rows;
  plan.rows.push_back({.run = run,
                       .branch = &branch,
                       .rows = rows,
                       .drafts = std::move(drafts),
                       .wants_logits = true,
                       .unknown = unknown > 0,
                       .handle = branch.handle});
}

void Planner::Enter(const std::shared_ptr<RequestRun>& run, Branch& branch, Plan& plan) const {
  const auto known = static_cast<uint32_t>(branch.tokens.size());
  if (branch.entered >= known) return;
  const client::OperationId id =
      plan.step.Advance(branch.handle, branch.entered,
                        std::span<const TokenId>(branch.tokens).subspan(branch.entered), ahead_);
  branch.committed = std::max(branch.committed, branch.entered);
  branch.entered = known;
  branch.asked_slots = std::max(branch.asked_slots, Limit(uint64_t{known} + ahead_));
  plan.issued.push_back({IssuedKind::kAdvance, id, run, &branch, branch.handle});
}

void Planner::AddBegins(Work& work, TimePoint now, Plan& plan) {
  if (now < work.begin_at) return;
  uint32_t sequences = CountSequences(work);
  // Branches of running requests that lost or never had a sequence come before new requests.
  for (const auto& run : work.running) {
    for (const auto& branch : run->branches()) {
      if (branch->state != BranchState::kWaiting) continue;
      AddBegin(work, run, *branch, plan);
      ++sequences;
    }
  }
  if (HasStalled(work)) return;
  while (!work.waiting.empty() && sequences < options_.max_sequences &&
         plan.step.operation_count() + 1 < pool_.max_operations_per_step) {
    std::shared_ptr<RequestRun> run = std::move(work.waiting.front());
    work.waiting.pop_front();
    for (const auto& branch : run->branches()) {
      if (branch->state == BranchState::kWaiting) AddBegin(work, run, *branch, plan);
    }
    sequences += run->request().width;
    work.running.push_back(std::move(run));
  }
}

void Planner::AddBegin(Work& work, const std::shared_ptr<RequestRun>& run, Branch& branch,
                       Plan& plan) {
  const Request& request = run->request();
  client::BeginParams begin;
  begin.sequence = branch.handle = work.next_handle++;
  begin.tokens = branch.tokens;
  begin.name_space = request.name_space;
  begin.allocate_tokens = options_.chunk_tokens;
  if (options_.admission == Admission::kGuaranteed) {
    begin.reserve_tokens = Limit(uint64_t{request.prompt.size()} + request.new_tokens + ahead_);
    begin.reserve_sequences = run->branches().size() == 1 ? request.width : 1;
  }
  branch.state = BranchState::kBeginning;
  branch.given = static_cast<uint32_t>(branch.tokens.size());
  branch.growing = true;
  const client::OperationId id = plan.step.Begin(std::move(begin));
  plan.issued.push_back({IssuedKind::kBegin, id, run, &branch, branch.handle});
  ++stats_.begins;
}

uint32_t Planner::Limit(uint64_t slots) const {
  return static_cast<uint32_t>(std::min<uint64_t>(slots, pool_.max_sequence_tokens));
}

}  // namespace quire::runtime
