// Naive model of the engine: obviously correct, slow, and independent of it.
//
// The model repeats every step on its own data and says what the answer must be. Where the rules
// leave a choice open (which free block, which of several equal copy sources) it follows the answer
// after checking that the choice was allowed; everything else it predicts. Good for pools of up to
// a few hundred blocks, of whose groups at least one sees everything, and workers whose leases stay
// alive or are ended.
#ifndef QUIRE_TESTS_SUPPORT_NAIVE_ENGINE_H_
#define QUIRE_TESTS_SUPPORT_NAIVE_ENGINE_H_

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cache_service/base/clock.h"
#include "cache_service/base/error.h"
#include "cache_service/engine/engine_options.h"
#include "cache_service/engine/step.h"
#include "cache_service/engine/worker_calls.h"
#include "tests/support/naive_pool.h"

namespace quire::testing {

struct NaiveWorker {
  std::string name{};
  std::string model_fingerprint{};
  StepNumber last_step = 0;
  StepNumber completed = 0;
};

// Birth of a sequence that a begin would make: after all others.
inline constexpr uint64_t kNotBorn = ~uint64_t{0};

class NaiveEngine {
 public:
  NaiveEngine(const EngineOptions& options, const Clock& clock);

  // --- Calls, in the order in which the engine gets them ---
  // Returns the worker's number.
  int Attach(const std::string& name, const std::string& model_fingerprint);
  void EndWorker(int worker);
  // A step that the engine accepted, with its answer. Returns what is wrong with the answer, or "".
  std::string Step(int worker, const StepParams& params, const StepResult& answer);
  // The same without an answer: blocks are chosen freely, and the answer (without table entries and
  // copies) is the model's own.
  StepResult Predict(int worker, const StepParams& params);
  // A completion reported without a step.
  void Complete(int worker, StepNumber completed);
  uint64_t EvictPrefix(const PrefixSelector& prefix);
  uint64_t Flush();
  // Tokens pinned; 0: nothing to pin.
  uint32_t Pin(const PrefixSelector& prefix, const std::string& pin_id, Duration duration);
  bool Unpin(const std::string& pin_id);

  // --- What must be visible now ---
  uint32_t Peek(const PrefixSelector& prefix);
  BlockStateCounts Counts();
  std::vector<SequenceView> Sequences(int worker);

  const NaivePool& pool() const { return pool_; }

  const NaiveWorker& worker(int number) const { return workers_.at(static_cast<size_t>(number)); }

 private:
  using Cell = std::tuple<SequenceHandle, uint32_t, uint32_t>;

  // Failure of one operation part; ok() if there is none.
  struct Outcome {
    Error error{};
    AdvancePart part = AdvancePart::kNone;
  };

  // The longest acceptable reuse of a prompt.
  struct Hit {
    // Per group and block index: resident blocks with exactly this content.
    std::vector<std::vector<std::vector<BlockId>>> whole{};
    // Per block index: most tokens that some content shares with the prompt there, of content that
    // is resident in all groups.
    std::vector<uint32_t> partial{};
  };

  struct Need {
    uint32_t blocks = 0;
    // Blocks that stop being available because the operation holds them.
    std::set<BlockId> taken{};
    // The blocks to copy from were a free choice.
    bool open_choice = false;
  };

  // naive_engine.cc
  uint32_t SpaceOf(const std::string& model_fingerprint, const NamespaceParts& parts);
  Items ItemsOf(std::span<const TokenId> tokens, const std::vector<DigestRange>& digests);
  void ApplyDue();
  void Publish(NaiveContent& content, BlockId block, StepNumber step);
  void Remap(BlockId from, BlockId to, StepNumber step);
  void ApplyCompletion(int worker, StepNumber completed, StepNumber step);
  void RunStep(int worker, const StepParams& params, bool choices_known);

  // naive_answer.cc
  void Mismatch(const std::string& what);
  void CompareAnswer(const StepResult& answer);
  void CompareFailures(const StepResult& answer);
  void LoadHints(const StepResult& answer);

  // naive_operations.cc
  void Run(uint32_t index, const Operation& operation);
  void Fail(uint32_t index, uint32_t entry, SequenceHandle handle, const Outcome& outcome);
  Outcome Begin(uint32_t index, const BeginOp& operation);
  void AdvanceEntry(uint32_t index, const AdvanceOp& operation, uint32_t entry,
                    std::span<const TokenId> tokens);
  Outcome Extend(const ExtendOp& operation);
  Outcome Commit(const CommitOp& operation);
  Outcome Fork(uint32_t index, const ForkOp& operation);
  Outcome Truncate(const TruncateOp& operation);
  Outcome Finish(const FinishOp& operation);
  Error CheckLength(SequenceHandle handle, uint32_t start_length);

  // naive_growth.cc
  NaiveSequence* FindSequence(SequenceHandle handle);
  uint32_t ComputedLength(const NaiveSequence& sequence) const;
  void CommitTo(SequenceHandle handle, uint32_t committed);
  void Seal(SequenceHandle handle, uint32_t group, uint32_t index);
  // Holds slots up to max(length, slots) and enters items up to `length`.
  Outcome Grow(SequenceHandle handle, uint32_t length, uint32_t slots, bool waits);
  bool TailIsShared(const NaiveSequence& sequence, SequenceHandle handle, uint32_t group);
  // Why the need of a sequence born then cannot be met, or ok().
  Error Refusal(const Need& need, uint64_t birth) const;
  std::optional<uint64_t> OldestWaiter() const;
  uint32_t FencedFor(int worker) const;
  void Take(const std::vector<Cell>& cells);
  void LeaveWindows(SequenceHandle handle);
  // The block that position `index` of the table has, or that the tree has for it.
  BlockId StillThere(const NaiveSequence& sequence, uint32_t group, uint32_t index) const;
  bool WindowIsThere(const NaiveSequence& sequence, uint32_t length) const;
  void ReattachWindows(SequenceHandle handle, uint32_t length);
  // Lets go of the table entries from `size` on, from the tail.
  void CutTables(SequenceHandle handle, size_t size);
  Hit Lookup(const Items& items, uint32_t space, int worker) const;
  bool Accepts(const Hit& hit, uint32_t length) const;
  uint32_t LongestHit(const Hit& hit, uint32_t limit) const;
  // The same in whole blocks.
  uint32_t LongestWholeHit(const Hit& hit, uint32_t limit) const;
  // First block that a sequence with this hit holds in the group; those before left its window.
  uint32_t FirstHeld(const Hit& hit, uint32_t group, uint32_t reused) const;
  Need NeedOf(const Hit& hit, const NaiveSequence& sequence, SequenceHandle handle, uint32_t reused,
              uint32_t length) const;
  void StartSequence(uint32_t index, SequenceHandle handle, NaiveSequence sequence, const Hit& hit,
                     uint32_t reused, uint32_t length);
  // Blocks whose content starts with the first `length` items, `length` not at a block border, and
  // is resident in all groups.
  std::vector<BlockId> CopySources(const NaiveSequence& sequence, uint32_t group,
                                   uint32_t length) const;
  bool ResidentInAllGroups(const NaiveContent& content, int worker) const;
  // The one that the answer names, or else one whose use costs most.
  BlockId ChooseSource(const std::vector<BlockId>& choices, const Cell& destination) const;
  // By group, of one place.
  std::vector<BlockId> ChooseSources(const NaiveSequence& sequence, SequenceHandle handle,
                                     uint32_t reused) const;
  BlockId Preferred(const std::vector<BlockId>& equal) const;
  BlockId ChooseFree(const Cell& cell) const;

  void AddChild(SequenceHandle parent, SequenceHandle child, uint32_t shared);
  void CopyTails(SequenceHandle parent, std::span<const SequenceHandle> children, uint32_t shared);
  void ShareTables(SequenceHandle parent, SequenceHandle child, bool has_tail);
  void ApplyRetention(const NaiveSequence& sequence, const std::vector<RetentionRange>& ranges);
  void DropSealed(const NaiveSequence& sequence);

  uint32_t BlocksFor(uint32_t tokens) const {
    return (tokens + options_.block_tokens - 1) / options_.block_tokens;
  }

  // naive_answer.cc: table changes and copies of the step.
  void SetCell(const Cell& cell, BlockId block);
  void ExpectEntry(const Cell& cell, BlockId block);
  void Copy(uint32_t group, BlockId source, BlockId destination, uint32_t tokens);

  const EngineOptions options_;
  const Clock& clock_;
  std::map<std::tuple<TokenId, std::optional<Digest>, uint32_t>, char32_t> items_;
  std::map<std::string, uint32_t> spaces_;
  std::vector<NaiveWorker> workers_;
  NaivePool pool_;

  // The step in hand.
  int actor_ = 0;
  StepNumber step_ = 0;
  bool in_step_ = false;
  bool follow_hints_ = true;
  // A step that failed as a whole hides which copy source it chose first: its failures are taken as
  // they are.
  mutable bool hidden_choice_ = false;
  std::vector<OperationFailure> answered_failures_;
  std::map<Cell, std::deque<BlockId>> hints_;
  std::vector<CopyOrder> copy_hints_;
  StepResult result_;
  std::string mismatch_;
  // Table changes that happened outside steps and are due in the worker's next answer.
  std::map<int, std::vector<std::pair<Cell, BlockId>>> unreported_;
};

}  // namespace quire::testing

#endif  // QUIRE_TESTS_SUPPORT_NAIVE_ENGINE_H_
