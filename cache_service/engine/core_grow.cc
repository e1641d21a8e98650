// Growth: extend and look-ahead (P5, P9).
#include <algorithm>

#include "cache_service/engine/engine_core.h"
#include "cache_service/engine/fault.h"

namespace quire {

Error EngineCore::Extend(const ExtendOp& op) {
  Error error;
  Sequence* sequence = FindAt(op.sequence, op.start_length, error);
  if (sequence == nullptr) return error;
  Touch(*sequence);
  const uint32_t slots = std::min(op.slots, options_.max_sequence_tokens);
  if (slots > sequence->reserved) {
    if (Error grown = Grow(*sequence, slots, true); !grown.ok()) return grown;
  }
  if (sequence->length < sequence->given) {
    sequence->length = std::max(sequence->length, std::min(sequence->given, slots));
  }
  return {};
}

// --- Slots ---

// A partly filled last block that others use, or that was sealed, is copied before it is written.
bool EngineCore::TailNeedsCopy(const Sequence& sequence, uint32_t group) const {
  if (sequence.length % options_.block_tokens == 0) return false;
  const uint32_t index = sequence.length / options_.block_tokens;
  const Block& tail = pool_.Get(sequence.tables[group][index]);
  return tail.table_refs > 1 || tail.Has(kSealedFlag);
}

Error EngineCore::Grow(Sequence& sequence, uint32_t slots, bool wait) {
  // The mere end of a block that was made the sequence's own when the first slots ahead were held.
  if (sequence.reserved > sequence.length && BlocksFor(slots) == BlocksFor(sequence.reserved) &&
      !Injected(Fault::kForkDropsAhead)) {
    sequence.reserved = std::max(sequence.reserved, slots);
    return {};
  }
  const uint32_t block_count = BlocksFor(slots);
  const auto held = static_cast<uint32_t>(sequence.tables[0].size());
  uint32_t copies = 0;
  for (uint32_t group = 0; group < groups(); ++group) copies += TailNeedsCopy(sequence, group);
  const uint64_t needed = uint64_t{std::max(block_count, held) - held} * groups() + copies;
  if (needed > 0) {
    if (copies > 0 && sequence.length > sequence.length_before_step) {
      return MakeError(Reason::kNotComputed, "the shared last block has tokens of this step",
                       {{"length", sequence.length}, {"computed", sequence.length_before_step}});
    }
    if (worker_->table_entries + needed > options_.max_table_entries_per_worker) {
      return TooManyEntries(needed);
    }
    // It may have come free meanwhile.
    if (sequence.claim != nullptr) UpdateClaim(sequence.claim, 0);
    const bool inside = sequence.claim != nullptr && slots <= sequence.claim->reserve_tokens;
    // Beyond window and chunk it takes nothing from the promise to its forks.
    const uint64_t promised =
        inside ? std::min({needed, copies + ShareOf(sequence), sequence.claim->remaining}) : 0;
    const bool claimed = promised == needed;
    const Sequence* waiter = claimed ? nullptr : OldestWaiter(sequence.serial);
    // The rest of its claim may wait for fences of others.
    if (waiter != nullptr ||
        needed > Headroom(*worker_, claimed ? sequence.claim->remaining : promised)) {
      ++counters_.shortages;
      if (wait) AddWaiter(sequence);
      return ShortageError({.needed = needed,
                            .own_claim = sequence.claim ? sequence.claim->remaining : 0,
                            .waiter = waiter});
    }
    if (wait) RemoveWaiter(sequence);
    if (copies > 0) CopyTail(sequence, sequence.length % options_.block_tokens);
    for (uint32_t i = held; i < block_count; ++i) {
      for (uint32_t group = 0; group < groups(); ++group) {
        const BlockId block = TakeBlock(group);
        AddEntry(sequence, group, block);
        AppendEntry(sequence, group, i, block);
      }
    }
    if (sequence.claim) UpdateClaim(sequence.claim, promised);
  }
  sequence.reserved = std::max(sequence.reserved, slots);
  return {};
}

void EngineCore::CopyTail(Sequence& sequence, uint32_t tokens) {
  const uint32_t index = sequence.length / options_.block_tokens;
  const bool shared = pool_.Get(sequence.tables[0][index]).table_refs > 1;
  for (uint32_t group = 0; group < groups(); ++group) {
    if (!TailNeedsCopy(sequence, group)) continue;
    const BlockId source = sequence.tables[group][index];
    Hold(source);
    const BlockId destination = TakeBlock(group);
    sequence.tables[group][index] = destination;
    Ref(destination, worker_->slot);
    Unref(source, worker_->slot, step_);
    AppendEntry(sequence, group, index, destination);
    Log(source, LogKind::kCopied);
    Hold(destination);
    Log(destination, LogKind::kCopied);
    EmitCopy(group, source, destination, tokens);
  }
  if (sequence.claim && shared && sequence.claim->copies_due > 0) {
    journal_.Save(sequence.claim->copies_due);
    --sequence.claim->copies_due;
  }
}

void EngineCore::EmitCopy(uint32_t group, BlockId source, BlockId destination, uint32_t tokens) {
  out_->copies.push_back({group, source, destination, tokens});
  ++counters_.copies;
  counters_.copied_tokens += tokens;
}

void EngineCore::AddEntry(Sequence& sequence, uint32_t group, BlockId block) {
  sequence.tables[group].push_back(block);
  journal_.Save(worker_->table_entries);
  ++worker_->table_entries;
  Ref(block, worker_->slot);
}

}  // namespace quire
