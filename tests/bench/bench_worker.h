// One worker that drives an engine in process, a step per call, each complete before the next.
#ifndef QUIRE_TESTS_BENCH_BENCH_WORKER_H_
#define QUIRE_TESTS_BENCH_BENCH_WORKER_H_

#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "cache_service/engine/cache_engine.h"

namespace quire::bench {

class BenchWorker {
 public:
  explicit BenchWorker(CacheEngine& engine, const std::string& name = "bench") : engine_(engine) {
    AttachParams params;
    params.worker = name;
    params.incarnation = 1;
    params.model_fingerprint = "m";
    params.lock_step = true;
    auto attached = engine.Attach(params);
    if (!attached.ok()) std::abort();
    lease_ = attached->lease;
  }

  // Runs one step; a failure ends the program, for no workload may fail silently.
  std::shared_ptr<const StepResult> Step(std::span<const Operation> operations) {
    StepParams params;
    params.lease = lease_;
    params.epoch = engine_.options().epoch;
    params.step = ++step_;
    params.operations = operations;
    auto result = engine_.Step(params);
    if (!result.ok() || !(*result)->failures.empty()) std::abort();
    return *std::move(result);
  }

  // Reports all before as complete, so that the next step is charged for itself only.
  void Settle() { Step({}); }

  std::shared_ptr<const StepResult> Do(Operation operation) {
    const std::vector<Operation> operations = {std::move(operation)};
    return Step(operations);
  }

  static Operation Begin(SequenceHandle sequence, std::span<const TokenId> tokens) {
    BeginOp op;
    op.sequence = sequence;
    op.tokens = tokens;
    return op;
  }

  static Operation Commit(SequenceHandle sequence, uint32_t length) {
    return CommitOp{sequence, length, length};
  }

  // A token for each, with slots ahead. The columns must outlive the step.
  static Operation Advance(std::span<const SequenceHandle> sequences,
                           std::span<const uint32_t> start_lengths,
                           std::span<const TokenId> tokens) {
    AdvanceOp op;
    op.sequences = sequences;
    op.start_lengths = start_lengths;
    op.tokens = tokens;
    op.ahead = 8;
    return op;
  }

  static Operation Finish(SequenceHandle sequence) {
    FinishOp op;
    op.sequence = sequence;
    return op;
  }

 private:
  CacheEngine& engine_;
  LeaseId lease_;
  StepNumber step_ = 0;
};

}  // namespace quire::bench

#endif  // QUIRE_TESTS_BENCH_BENCH_WORKER_H_
