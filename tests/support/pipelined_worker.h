// A worker that decodes with several steps in flight over a simulated device, to find any block
// that changes hands too early.
//
// Each Tick learns results, applies the answer that is due, sends a step and launches one kernel
// per sequence. Kernels and copies wait in the order of a device stream and act on tagged memory
// when they run; a kernel keeps the block tables of its launch. When it runs, every slot it reads
// must hold its own token. The values it samples are known to the host `lag` launches later; of
// `drafts` drafts a random number is accepted. On shortage the youngest sequence is preempted and
// begun again later. Good for engines in process; not for timing.
#ifndef QUIRE_TESTS_SUPPORT_PIPELINED_WORKER_H_
#define QUIRE_TESTS_SUPPORT_PIPELINED_WORKER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/support/engine_driver.h"
#include "tests/support/scenario_batch.h"
#include "tests/support/tagged_memory.h"

namespace quire::testing {

struct PipelineOptions {
  uint32_t lag = 1;
  uint32_t drafts = 0;
  // Launches between sending a step and applying its answer: the steps in flight.
  uint32_t answer_delay = 3;
  // Slots kept beyond the length.
  uint32_t ahead = 0;
  uint32_t most_sequences = 4;
  uint32_t most_prompt_tokens = 40;
  // A sequence ends at random, at the latest with this length.
  uint32_t most_tokens = 120;
  uint32_t seed = 1;

  // The look-ahead with which no launch waits (P9).
  uint32_t EnoughAhead() const { return (1 + drafts) * (lag + answer_delay + 1) - 1; }
};

class PipelinedWorker {
 public:
  PipelinedWorker(EngineDriver& driver, TaggedMemory& memory, const AttachParams& params,
                  const PipelineOptions& options);

  void Tick();
  // Ends all sequences and reports everything complete.
  void Stop();

  // Launches that had to wait for an answer although the sequence was decoding already.
  uint64_t waits() const { return waits_; }

  uint64_t launches() const { return launches_; }

  uint64_t preemptions() const { return preemptions_; }

  uint64_t forks() const { return forks_; }

  uint64_t tokens_reused() const { return tokens_reused_; }

 private:
  // One sequence: what is true on the device, and what the host knows of it.
  struct Decoding {
    SequenceHandle handle = 0;
    // Tokens and contents up to the last sampled one; the host knows the first `known`.
    Tokens truth;
    std::vector<ContentId> contents;
    uint32_t known = 0;
    // Length after the steps sent, and by the answers applied.
    uint32_t sent = 0;
    uint32_t entered = 0;
    uint32_t reserved = 0;
    // Tokens whose kernels were launched.
    uint32_t written = 0;
    uint32_t unknown_launches = 0;
    uint32_t unanswered = 0;
    bool begun = false;
    // An advance failed: wait until no step in flight names this sequence.
    bool stalled = false;
    bool ending = false;
    std::vector<std::vector<BlockId>> tables;
    // Of a child whose tables start as the parent's, until the answer of its fork is applied.
    std::shared_ptr<Decoding> parent;
  };

  using DecodingPtr = std::shared_ptr<Decoding>;

  enum class Kind { kBegin, kExtend, kAdvance, kFork, kFinish };

  // One operation (or entry of an advance) of a sent step.
  struct Sent {
    Kind kind;
    uint32_t operation;
    uint32_t entry;
    DecodingPtr sequence;
    // Tokens that enter, or slots of an extend.
    uint32_t count = 0;
  };

  struct InFlight {
    std::vector<Sent> operations;
    StepResult answer;
  };

  struct Action {
    uint64_t tick;
    std::function<void()> run;
  };

  void RunDevice(uint64_t through_tick);
  void ApplyOldest();
  void ApplyOperation(const Sent& sent, const StepResult& answer);
  void ApplyBegin(const Sent& sent, const StepResult& answer, const OperationFailure* failure);
  void ApplyAdvance(const Sent& sent, const OperationFailure* failure);
  void ApplyRuns(const StepResult& answer);
  void CopyParentTables(Decoding& child) const;
  void Preempt();

  void SendStep();
  void AddFinishes(Batch& batch, InFlight& step);
  void AddForks(Batch& batch, InFlight& step);
  void AddAdvances(Batch& batch, InFlight& step);
  void AddBegins(Batch& batch, InFlight& step);

  void LaunchAll();
  void Launch(const DecodingPtr& sequence, uint32_t drafts);
  void RunKernel(const Decoding& sequence, const std::vector<std::vector<BlockId>>& tables,
                 uint32_t first_written, uint32_t position, const std::vector<ContentId>& written);

  DecodingPtr MakeSequence(const Tokens& tokens);
  Tokens DrawPrompt();
  void AppendTruth(Decoding& sequence, TokenId token);
  size_t Running() const;

  uint32_t Draw(uint32_t below) { return static_cast<uint32_t>(random_() % below); }

  EngineDriver& driver_;
  TaggedMemory& memory_;
  const PipelineOptions options_;
  std::mt19937 random_;
  const std::string name_;
  LeaseId lease_;
  ContentId root_;
  uint64_t tick_ = 0;
  StepNumber last_sent_ = 0;
  StepNumber applied_ = 0;
  StepNumber completed_ = 0;
  bool stopping_ = false;
  bool short_of_blocks_ = false;
  // A refusal named another worker's older sequence as the one that waits.
  bool must_give_way_ = false;
  std::deque<InFlight> in_flight_;
  std::deque<Action> device_;
  std::map<SequenceHandle, DecodingPtr> sequences_;
  std::deque<Tokens> waiting_;
  SequenceHandle next_handle_ = 1;
  TokenId next_token_ = 1'000'000;
  uint64_t waits_ = 0;
  uint64_t launches_ = 0;
  uint64_t preemptions_ = 0;
  uint64_t forks_ = 0;
  uint64_t tokens_reused_ = 0;
};

}  // namespace quire::testing

#endif  // QUIRE_TESTS_SUPPORT_PIPELINED_WORKER_H_
