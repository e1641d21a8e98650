// A worker as a story tells it: lease, numbered steps, tables from answers, reports of completion.
//
//   Worker& w = story.Attach("w");
//   w.Prompt(1, Text(1, 55));              // begin, commit, report complete
//   w.Do(Batch().Fork(1, 55, {2}));        // one step, answer applied
//   w.Send(Batch().Finish(1));             // in flight until w.ApplyNext()
//   w.Settle();                            // all applied and reported complete
#ifndef QUIRE_TESTS_SUPPORT_SCENARIO_WORKER_H_
#define QUIRE_TESTS_SUPPORT_SCENARIO_WORKER_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "tests/support/client_tables.h"
#include "tests/support/engine_driver.h"
#include "tests/support/scenario_batch.h"

namespace quire::testing {

class Worker {
 public:
  // Attaches; a refusal is a test failure.
  Worker(EngineDriver& driver, TaggedMemory& memory, const AttachParams& params);

  const std::string& name() const { return params_.worker; }

  const AttachParams& params() const { return params_; }

  const LeaseId& lease() const { return attached_.lease; }

  const AttachResult& attached() const { return attached_; }

  ClientTables& tables() { return tables_; }

  // --- Steps ---
  // Sends the next step; its answer waits for ApplyNext. An error means the step was refused and
  // its number is still free.
  Error Send(const Batch& batch);
  // Applies the oldest answer in flight.
  StepResult ApplyNext();
  // Sends, applies everything in flight, returns the answer of this step.
  StepResult Do(const Batch& batch);
  // Do, failing the test if any operation fails.
  StepResult Must(const Batch& batch);

  // The steps up to `step` are complete; the next call reports it.
  void Complete(StepNumber step) { completed_ = step; }

  // Everything sent is applied and complete, and an empty step reports it.
  StepResult Settle();
  Error Renew();

  StepNumber last_sent() const { return last_sent_; }

  StepNumber applied() const { return last_sent_ - in_flight_.size(); }

  size_t in_flight() const { return in_flight_.size(); }

  // Parameters of a step with this worker's counters, for calls by hand. Valid while `batch` lives.
  StepParams ParamsFor(const Batch& batch, StepNumber step) const;

  // --- Stories: each ends settled ---
  // Begin and commit of the whole prompt.
  BeginResult Prompt(SequenceHandle sequence, const Tokens& tokens,
                     const BeginOptions& options = {});
  // Begin without commit.
  BeginResult Begin(SequenceHandle sequence, const Tokens& tokens,
                    const BeginOptions& options = {});
  // The reason and numbers with which a begin is refused.
  Error BeginError(SequenceHandle sequence, const Tokens& tokens, const BeginOptions& options = {});
  void Commit(SequenceHandle sequence, uint32_t committed_length);
  void Advance(SequenceHandle sequence, TokenId token, uint32_t ahead = 0);
  // Enters `tokens` one by one; commits all but the last.
  void Generate(SequenceHandle sequence, const Tokens& tokens);
  void Extend(SequenceHandle sequence, uint32_t slots);
  void Fork(SequenceHandle sequence, const std::vector<SequenceHandle>& children);
  void Truncate(SequenceHandle sequence, uint32_t length);
  void Finish(SequenceHandle sequence, bool drop = false,
              const std::vector<RetentionRange>& retention = {});

  // --- Reading ---
  uint32_t Length(SequenceHandle sequence) const { return tables_.At(sequence).length; }

  const std::vector<BlockId>& Table(SequenceHandle sequence, uint32_t group = 0) const {
    return tables_.At(sequence).groups.at(group).blocks;
  }

  // Blocks of the table that are there.
  size_t Held(SequenceHandle sequence, uint32_t group = 0) const;
  // As the server reports it.
  SequenceView View(SequenceHandle sequence) const;
  // Bytes are right and, if nothing is in flight, the server's tables are the worker's.
  void ExpectConsistent() const;

 private:
  struct InFlight {
    Batch batch;
    StepResult answer;
  };

  EngineDriver& driver_;
  AttachParams params_;
  AttachResult attached_;
  ClientTables tables_;
  StepNumber last_sent_ = 0;
  StepNumber completed_ = 0;
  std::deque<InFlight> in_flight_;
};

}  // namespace quire::testing

#endif  // QUIRE_TESTS_SUPPORT_SCENARIO_WORKER_H_
