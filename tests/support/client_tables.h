// What a worker knows about its sequences: tokens, lengths and block tables, from answers alone.
//
// Apply takes an answer whole and in order, as the protocol asks: table runs, then copies; then the
// kernels of the step "run", which write the tag of every new token through the tables.
#ifndef QUIRE_TESTS_SUPPORT_CLIENT_TABLES_H_
#define QUIRE_TESTS_SUPPORT_CLIENT_TABLES_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cache_service/engine/engine_options.h"
#include "cache_service/engine/step.h"
#include "cache_service/engine/worker_calls.h"
#include "tests/support/scenario_batch.h"
#include "tests/support/tagged_memory.h"

namespace quire::testing {

struct ClientSequence {
  // Given tokens; those from `length` on have no slots yet.
  Tokens tokens;
  // Identity of each given token's content.
  std::vector<ContentId> contents;
  uint32_t length = 0;
  uint32_t reserved = 0;
  // Tokens whose bytes are written.
  uint32_t computed = 0;
  // Contents of drafts written from `length` on.
  std::vector<ContentId> drafts;
  std::vector<GroupTable> groups;
};

class ClientTables {
 public:
  ClientTables(const EngineOptions& options, std::string model_fingerprint, TaggedMemory& memory);

  void Apply(const Batch& batch, const StepResult& answer);

  bool Has(SequenceHandle sequence) const { return sequences_.contains(sequence); }

  const ClientSequence& At(SequenceHandle sequence) const { return sequences_.at(sequence); }

  const std::map<SequenceHandle, ClientSequence>& all() const { return sequences_; }

  // A kernel writes drafts into the slots ahead. Those that enter later are not written again.
  void WriteDrafts(SequenceHandle sequence, const Tokens& drafts);
  // Every slot that a kernel may read holds its own token, every slot is covered by a block, and no
  // table is longer than its slots need. Reports each failure.
  void ExpectBytes() const;
  // The server's view of the tables is the worker's.
  void ExpectEqualTo(const std::vector<SequenceView>& views) const;

 private:
  void ApplyOperations(const Batch& batch, const StepResult& answer);
  void Enter(uint32_t index, const BeginOp& begin, const StepResult& answer);
  void Enter(uint32_t index, const AdvanceOp& advance, const StepResult& answer);
  void Enter(uint32_t index, const ExtendOp& extend, const StepResult& answer);
  void Enter(uint32_t index, const CommitOp& commit, const StepResult& answer);
  void Enter(uint32_t index, const ForkOp& fork, const StepResult& answer);
  void Enter(uint32_t index, const TruncateOp& truncate, const StepResult& answer);
  void Enter(uint32_t index, const FinishOp& finish, const StepResult& answer);
  void EnterToken(ClientSequence& sequence, TokenId token);
  void ApplyRuns(const StepResult& answer);
  void CopyParentTables(SequenceHandle child);
  void Launch();
  uint32_t FirstReadableBlock(uint32_t group, uint32_t length) const;
  uint32_t BlocksFor(uint32_t slots) const;

  const EngineOptions& options_;
  std::string model_fingerprint_;
  TaggedMemory& memory_;
  std::map<SequenceHandle, ClientSequence> sequences_;
  // Children of the answer being applied that have no tables yet, and their parents.
  std::map<SequenceHandle, SequenceHandle> parents_;
  // Ended by the answer being applied; their tables may still be needed for children.
  std::set<SequenceHandle> finished_;
};

}  // namespace quire::testing

#endif  // QUIRE_TESTS_SUPPORT_CLIENT_TABLES_H_
