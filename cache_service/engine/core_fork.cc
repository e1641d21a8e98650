// Fork: children share every block up to the committed length (P7).
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "cache_service/engine/engine_core.h"
#include "cache_service/engine/fault.h"

namespace quire {

Error EngineCore::CheckFork(const ForkOp& op, const Sequence& parent) {
  if (op.children.empty()) return InvalidArgument("children", "a fork has at least one child");
  absl::flat_hash_set<SequenceHandle> handles;
  for (const SequenceHandle child : op.children) {
    if (worker_->sequences.contains(child) || !handles.insert(child).second) {
      return MakeError(Reason::kSequenceExists, absl::StrCat("sequence ", child, " exists"),
                       {{"sequence", child}});
    }
  }
  if (worker_->sequences.size() + op.children.size() > options_.max_sequences_per_worker) {
    return TooManySequences(op.children.size());
  }
  const uint32_t entered = parent.touched_step == step_ ? parent.length_before_step : parent.length;
  const uint32_t shared = std::max(parent.committed, entered);
  if (shared == 0) {
    return MakeError(Reason::kNotComputed, "no token of the sequence entered in an earlier step",
                     {{"computed", 0}});
  }
  const uint64_t entries = uint64_t{BlocksFor(shared)} * groups() * op.children.size();
  if (worker_->table_entries + entries > options_.max_table_entries_per_worker) {
    return TooManyEntries(entries);
  }
  if (parent.claim != nullptr && parent.claim->forks_left < op.children.size()) {
    Error error = ShortageError({.needed = parent.claim->blocks_per_sequence * op.children.size(),
                                 .own_claim = parent.claim->remaining});
    error.message = absl::StrCat("the claim covers ", parent.claim->forks_left,
                                 " more sequences (reserve_sequences)");
    error.details.emplace_back("claimed_sequences_left", parent.claim->forks_left);
    return error;
  }
  return {};
}

Error EngineCore::Fork(const ForkOp& op) {
  Error error;
  Sequence* parent = FindAt(op.sequence, op.start_length, error);
  if (parent == nullptr) return error;
  if (Error invalid = CheckFork(op, *parent); !invalid.ok()) return invalid;
  const uint32_t entered =
      parent->touched_step == step_ ? parent->length_before_step : parent->length;
  const uint32_t shared = std::max(parent->committed, entered);
  // The parent's kernels may be writing ahead in its last block, so the children get copies of it.
  const bool ahead = parent->reserved > parent->length && !Injected(Fault::kForkDropsAhead);
  const bool copy_tail = ahead && shared % options_.block_tokens != 0;
  const uint64_t needed = copy_tail ? uint64_t{groups()} * op.children.size() : 0;
  const bool claimed = parent->claim != nullptr && needed <= parent->claim->remaining;
  const Sequence* waiter = needed > 0 && !claimed ? OldestWaiter(parent->serial) : nullptr;
  if (waiter != nullptr || needed > Headroom(*worker_, claimed ? parent->claim->remaining : 0)) {
    ++counters_.shortages;
    return ShortageError({.needed = needed,
                          .own_claim = parent->claim ? parent->claim->remaining : 0,
                          .waiter = waiter});
  }
  Touch(*parent);
  // Before the commit, which may hold blocks that were counted: equal content that lay idle.
  std::vector<BlockId> tails(needed);
  for (size_t i = 0; i < tails.size(); ++i) {
    tails[i] = TakeBlock(static_cast<uint32_t>(i % groups()));
  }
  CommitTo(*parent, shared);
  if (parent->length < parent->given) {
    parent->given = parent->length;
    parent->tokens.resize(parent->length - parent->token_base);
    parent->digests = CutDigests(parent->digests, parent->length);
  }
  const uint32_t shared_blocks = BlocksFor(shared) - (copy_tail ? 1 : 0);
  for (const std::vector<BlockId>& table : parent->tables) {
    pool_.AddTableRefs(std::span(table).first(shared_blocks), worker_->slot,
                       static_cast<uint32_t>(op.children.size()));
  }
  std::span<const BlockId> unused(tails);
  const SharedDigests digests = CutDigests(parent->digests, shared);
  for (const SequenceHandle child : op.children) {
    AddChild(*parent, child, digests, unused.first(copy_tail ? groups() : 0));
    unused = unused.subspan(copy_tail ? groups() : 0);
  }
  if (parent->claim) UpdateClaim(parent->claim, claimed ? needed : 0);
  out_->forks.push_back({operation_, shared});
  ++counters_.forks;
  return {};
}

// `tails`: by group, blocks for the child's copy of the partial tail; empty: it is shared. The
// child's references to the parent's blocks are counted already.
void EngineCore::AddChild(Sequence& parent, SequenceHandle handle, const SharedDigests& digests,
                          std::span<const BlockId> tails) {
  SequenceStore::Owned owned = sequence_store_.New();
  Sequence& child = *owned;
  child.handle = handle;
  child.worker = parent.worker;
  journal_.Save(next_serial_);
  child.serial = next_serial_++;
  child.root = parent.root;
  tree_.UseRoot(child.root);
  child.committed = child.length = child.reserved = child.given = parent.committed;
  child.sealed = parent.sealed;
  StandOn(child, parent.node);
  child.publishes = parent.publishes;
  child.touched_step = step_;
  child.length_before_step = child.length;
  child.token_base = parent.token_base;
  child.tokens.assign(parent.tokens.begin(),
                      parent.tokens.begin() + (child.length - parent.token_base));
  child.digests = digests;
  child.retention = parent.retention;
  child.namespace_parts = parent.namespace_parts;
  child.window_start = parent.window_start;
  child.tables.resize(groups());
  const uint32_t blocks = BlocksFor(child.length);
  const uint32_t shared_blocks = tails.empty() ? blocks : blocks - 1;
  for (uint32_t group = 0; group < groups(); ++group) {
    const std::vector<BlockId>& table = parent.tables[group];
    child.tables[group].assign(table.begin(), table.begin() + shared_blocks);
    journal_.Save(worker_->table_entries);
    worker_->table_entries += shared_blocks;
  }
  const uint32_t tail_tokens = child.length % options_.block_tokens;
  for (uint32_t group = 0; group < tails.size(); ++group) {
    const BlockId source = parent.tables[group][blocks - 1];
    Hold(source);
    const BlockId destination = tails[group];
    AddEntry(child, group, destination);
    Log(source, LogKind::kCopied);
    Hold(destination);
    Log(destination, LogKind::kCopied);
    EmitCopy(group, source, destination, tail_tokens);
  }
  // One run a group, even if nothing differs: it marks the moment at which the parent's entries
  // count.
  for (uint32_t group = 0; group < groups(); ++group) {
    AppendEntry(child, group, blocks - 1, child.tables[group][blocks - 1]);
  }
  if (parent.claim != nullptr) {
    if (journal_.active()) {
      journal_.OnRollback([claim = parent.claim, members = parent.claim->members,
                           forks_left = parent.claim->forks_left,
                           copies_due = parent.claim->copies_due] {
        claim->members = members;
        claim->forks_left = forks_left;
        claim->copies_due = copies_due;
      });
    }
    child.claim = parent.claim;
    child.claim->members.push_back(&child);
    --child.claim->forks_left;
    if (tail_tokens != 0 && tails.empty()) child.claim->copies_due += groups();
  }
  journal_.Save(live_sequences_);
  ++live_sequences_;
  worker_->sequences.emplace(handle, std::move(owned));
  journal_.OnRollback([worker = worker_, handle] { worker->sequences.erase(handle); });
}

}  // namespace quire
