// Makes steps out of choices: mostly sensible operations on the sequences that a worker has, with
// some wrong ones among them.
#ifndef QUIRE_TESTS_SUPPORT_STEP_MAKER_H_
#define QUIRE_TESTS_SUPPORT_STEP_MAKER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cache_service/engine/engine_options.h"
#include "cache_service/engine/step.h"
#include "cache_service/engine/worker_calls.h"
#include "tests/support/choices.h"
#include "tests/support/naive_engine.h"

namespace quire::testing {

// A prompt as a caller gives it.
struct Prompt {
  NamespaceParts parts{};
  std::vector<TokenId> tokens{};
  std::vector<DigestRange> digests{};
};

// Operations and the memory that their spans point into; addresses stay when it moves.
struct MadeStep {
  std::deque<std::vector<uint32_t>> numbers{};
  std::deque<std::vector<SequenceHandle>> handles{};
  std::vector<Operation> operations{};
  // One line per operation.
  std::string text{};
};

class StepMaker {
 public:
  StepMaker(const EngineOptions& options, uint32_t alphabet, uint32_t handles)
      : options_(options), alphabet_(alphabet), handles_(handles) {}

  // `sequences`: what the worker has before the step. Operation i is left out if bit i of
  // `left_out` is set.
  MadeStep Make(Choices& choices, const std::vector<SequenceView>& sequences, uint32_t left_out);
  Prompt MakePrompt(Choices& choices);

 private:
  // Length that a sequence will have when the next operation of the step starts, if foreseeable.
  using Lengths = std::map<SequenceHandle, uint32_t>;

  std::optional<SequenceHandle> Pick(Choices& choices) const;
  SequenceHandle PickNew(Choices& choices) const;
  std::vector<RetentionRange> MakeRetention(Choices& choices) const;
  void AddBegin(Choices& choices, MadeStep& step);
  void AddAdvance(Choices& choices, MadeStep& step);
  void AddExtend(Choices& choices, SequenceHandle handle, MadeStep& step);
  void AddCommit(Choices& choices, SequenceHandle handle, MadeStep& step);
  void AddFork(Choices& choices, SequenceHandle handle, MadeStep& step);
  void AddTruncate(Choices& choices, SequenceHandle handle, MadeStep& step);
  void AddFinish(Choices& choices, SequenceHandle handle, MadeStep& step);

  const EngineOptions options_;
  const uint32_t alphabet_;
  const uint32_t handles_;
  // Earlier prompts, so that new ones share prefixes with them.
  std::deque<Prompt> history_;
  Lengths lengths_;
};

// One line for logs.
std::string Describe(const Prompt& prompt);
std::string Describe(const Operation& operation);

}  // namespace quire::testing

#endif  // QUIRE_TESTS_SUPPORT_STEP_MAKER_H_
