// Numbered steps: repeats, order, and the run of operations.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_service/engine/engine_core.h"
#include "cache_service/engine/fault.h"
#include "cache_service/engine/overloaded.h"
#include "cache_service/engine/step_identity.h"

namespace quire {
namespace {

Error OutOfOrder(const StepParams& params, const WorkerState& worker) {
  return MakeError(
      Reason::kStepOutOfOrder,
      absl::StrCat("step ", params.step, " is out of order, expected ", worker.last_step + 1),
      {{"step", params.step}, {"expected_step", worker.last_step + 1}});
}

Error CountersOutOfOrder(const StepParams& params) {
  return InvalidArgument("applied_step", "completed_step <= applied_step < step does not hold",
                         {{"completed_step", params.completed_step},
                          {"applied_step", params.applied_step},
                          {"step", params.step}});
}

}  // namespace

Error EngineCore::CheckStep(const StepParams& params, WorkerState& worker) {
  if (params.step == 0) return InvalidArgument("step", "steps count from 1");
  if (params.applied_step >= params.step || params.completed_step > params.applied_step) {
    return CountersOutOfOrder(params);
  }
  if (params.step > worker.last_step + 1) return OutOfOrder(params, worker);
  if (params.step - params.applied_step > options_.max_steps_in_flight) {
    return InvalidArgument(
        "applied_step", "too many steps in flight",
        {{"limit", options_.max_steps_in_flight}, {"given", params.step - params.applied_step}});
  }
  if (!worker.mapped && worker.map_memory && options_.memory == PoolMemoryKind::kShared &&
      seams_.mappings != nullptr) {
    if (!seams_.mappings->IsMapped(worker.lease_number)) {
      return InvalidArgument("regions",
                             "not every region is mapped and locked by this lease; attach with "
                             "map_memory = false to work without memory");
    }
    worker.mapped = true;
  }
  return CheckOperationCount(params);
}

Error EngineCore::CheckOperationCount(const StepParams& params) const {
  uint64_t count = 0;
  uint64_t entries = 0;
  for (const Operation& operation : params.operations) {
    if (const auto* advance = std::get_if<AdvanceOp>(&operation)) {
      count += std::max<uint64_t>(1, advance->sequences.size());
      entries += advance->sequences.size() *
                     (2 + BlocksFor(std::min(advance->ahead, options_.max_sequence_tokens))) +
                 BlocksFor(advance->tokens.size());
      for (const uint32_t ahead : advance->aheads) {
        entries += BlocksFor(std::min(ahead, options_.max_sequence_tokens));
      }
    } else {
      ++count;
      if (const auto* begin = std::get_if<BeginOp>(&operation)) {
        entries += BlocksFor(begin->tokens.size());
      } else if (const auto* extend = std::get_if<ExtendOp>(&operation)) {
        entries += BlocksFor(std::min(extend->slots, options_.max_sequence_tokens));
      } else if (const auto* fork = std::get_if<ForkOp>(&operation)) {
        count += fork->children.size();
        entries += 2 * fork->children.size();
      }
    }
    if (count > options_.max_operations_per_step) {
      return InvalidArgument("operations", "too many operations in one step",
                             {{"given", count}, {"limit", options_.max_operations_per_step}});
    }
    if (entries * groups() > options_.max_answer_entries) {
      return InvalidArgument(
          "operations", "the answer could name too many table entries",
          {{"given", entries * groups()}, {"limit", options_.max_answer_entries}});
    }
  }
  return {};
}

absl::StatusOr<std::shared_ptr<const StepResult>> EngineCore::Step(const StepParams& given) {
  ApplyDue();
  absl::StatusOr<WorkerState*> found = FindLease(given.lease, given.epoch, given.caller);
  if (!found.ok()) return found.status();
  WorkerState& worker = **found;
  if (!worker.lock_step || given.step == 0) return StepOf(worker, given);
  StepParams params = given;
  params.applied_step = params.completed_step = given.step - 1;
  return StepOf(worker, params);
}

absl::StatusOr<std::shared_ptr<const StepResult>> EngineCore::StepOf(WorkerState& worker,
                                                                     const StepParams& params) {
  if (params.step > 0 && params.step <= worker.last_step) return RepeatStep(params, worker);
  if (Error error = CheckStep(params, worker); !error.ok()) {
    ++counters_.steps_refused;
    return ToStatus(error);
  }
  worker.deadline = AddSaturating(now_, worker.lease_duration);
  worker.last_step = params.step;
  worker.applied_step = std::max(worker.applied_step, params.applied_step);
  while (!worker.answers.empty() && worker.answers.front().step <= worker.applied_step) {
    worker.answers.pop_front();
  }

  auto result = std::make_shared<StepResult>();
  worker_ = &worker;
  step_ = result->step = params.step;
  out_ = result.get();
  FlushUnreported(worker);
  Complete(worker, params.completed_step);
  FitClaims();
  RunOperations(params);
  FitClaims();
  result->pool = CountsFor(worker);
  result->notices = std::exchange(worker.notices, {});
  out_ = nullptr;
  worker_ = nullptr;

  ++counters_.steps;
  if (Injected(Fault::kOneAnswerStored)) worker.answers.clear();
  worker.answers.push_back({params.step, Fingerprint(params), result});
  return std::shared_ptr<const StepResult>(std::move(result));
}

absl::StatusOr<std::shared_ptr<const StepResult>> EngineCore::RepeatStep(const StepParams& params,
                                                                         WorkerState& worker) {
  if (params.applied_step >= params.step || params.completed_step > params.applied_step) {
    return ToStatus(CountersOutOfOrder(params));
  }
  const auto stored =
      std::find_if(worker.answers.begin(), worker.answers.end(),
                   [&](const StoredAnswer& answer) { return answer.step == params.step; });
  if (stored == worker.answers.end()) {
    ++counters_.steps_refused;
    return ToStatus(OutOfOrder(params, worker));
  }
  if (stored->fingerprint != Fingerprint(params)) {
    ++counters_.steps_refused;
    return ToStatus(InvalidArgument("operations", "a repeat of this step has other operations",
                                    {{"step", params.step}}));
  }
  std::shared_ptr<const StepResult> result = stored->result;
  worker.deadline = AddSaturating(now_, worker.lease_duration);
  worker.applied_step = std::max(worker.applied_step, params.applied_step);
  Complete(worker, params.completed_step);
  FitClaims();
  ++counters_.steps_repeated;
  return result;
}

void EngineCore::RunOperations(const StepParams& params) {
  const StepResult before = params.all_or_nothing ? *out_ : StepResult{};
  std::optional<EngineCounters> counters_before;
  if (params.all_or_nothing) {
    counters_before = counters_;
    journal_.Start();
  }
  uint64_t count = 0;
  for (operation_ = 0; operation_ < params.operations.size(); ++operation_) {
    const Operation& operation = params.operations[operation_];
    const auto* advance = std::get_if<AdvanceOp>(&operation);
    count += advance != nullptr ? std::max<uint64_t>(1, advance->sequences.size()) : 1;
    if (Error error = RunOperation(operation); !error.ok()) {
      FailOperation(std::move(error), NamedSequence(operation));
    }
    if (params.all_or_nothing && !out_->failures.empty()) break;
  }
  if (params.all_or_nothing) {
    if (out_->failures.empty()) {
      journal_.Commit();
    } else {
      std::vector<OperationFailure> failures = std::move(out_->failures);
      journal_.Rollback();
      *out_ = before;
      out_->failures = std::move(failures);
      counters_ = *counters_before;
    }
  }
  counters_.operations += count;
  counters_.operations_failed += out_->failures.size();
  operations_per_step_.Add(count);
}

Error EngineCore::RunOperation(const Operation& operation) {
  return std::visit(Overloaded{[&](const BeginOp& op) { return Begin(op); },
                               [&](const AdvanceOp& op) {
                                 Advance(op);
                                 return Error{};
                               },
                               [&](const ExtendOp& op) { return Extend(op); },
                               [&](const CommitOp& op) { return Commit(op); },
                               [&](const ForkOp& op) { return Fork(op); },
                               [&](const TruncateOp& op) { return Truncate(op); },
                               [&](const FinishOp& op) { return Finish(op); }},
                    operation);
}

// The sequence that an operation names, if it exists.
const Sequence* EngineCore::NamedSequence(const Operation& operation) {
  return std::visit(
      Overloaded{[](const AdvanceOp&) -> const Sequence* { return nullptr; },
                 [&](const auto& op) -> const Sequence* { return Find(op.sequence); }},
      operation);
}

void EngineCore::FailOperation(Error error, const Sequence* sequence, uint32_t entry,
                               AdvancePart part) {
  OperationFailure failure;
  failure.operation = operation_;
  failure.entry = entry;
  failure.part = part;
  failure.reserved = sequence != nullptr ? sequence->reserved : 0;
  failure.error = std::move(error);
  out_->failures.push_back(std::move(failure));
}

}  // namespace quire
