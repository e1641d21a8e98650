// Finding, saving and answering for sequences: what all operations need.
#include "absl/strings/str_cat.h"
#include "cache_service/engine/engine_core.h"
#include "cache_service/engine/fault.h"

namespace quire {

void EngineCore::AppendEntry(const Sequence& sequence, uint32_t group, uint32_t index,
                             BlockId block) {
  const auto position = static_cast<uint32_t>(out_->blocks.size());
  out_->blocks.push_back(block);
  if (!out_->runs.empty()) {
    TableRun& last = out_->runs.back();
    if (last.sequence == sequence.handle && last.group == group &&
        last.first_index + last.count == index) {
      ++last.count;
      return;
    }
  }
  out_->runs.push_back({sequence.handle, group, index, position, 1});
}

void EngineCore::AppendTable(const Sequence& sequence, uint32_t group) {
  const std::vector<BlockId>& table = sequence.tables[group];
  if (table.empty()) return;
  out_->runs.push_back({sequence.handle, group, 0, static_cast<uint32_t>(out_->blocks.size()),
                        static_cast<uint32_t>(table.size())});
  out_->blocks.insert(out_->blocks.end(), table.begin(), table.end());
}

Error EngineCore::TooManySequences(uint64_t more) const {
  return LimitExceeded("sequences", "too many of this worker", worker_->sequences.size() + more,
                       options_.max_sequences_per_worker);
}

Error EngineCore::TooManyEntries(uint64_t more) const {
  return LimitExceeded("table_entries", "too many of this worker", worker_->table_entries + more,
                       options_.max_table_entries_per_worker);
}

PoolCounts EngineCore::CountsFor(const WorkerState& worker) const {
  PoolCounts counts;
  counts.free = static_cast<uint32_t>(pool_.OpenFree() + pool_.OwnFree(worker.slot));
  counts.evictable = static_cast<uint32_t>(pool_.OpenEvictable() + pool_.OwnEvictable(worker.slot));
  counts.fenced =
      static_cast<uint32_t>(pool_.CountIn(BlockState::kFenced) - pool_.OwnFree(worker.slot) -
                            pool_.OwnEvictable(worker.slot));
  return counts;
}

Sequence* EngineCore::Find(SequenceHandle handle) {
  const auto found = worker_->sequences.find(handle);
  return found == worker_->sequences.end() ? nullptr : found->second.get();
}

Sequence* EngineCore::FindAt(SequenceHandle handle, uint32_t start_length, Error& error) {
  Sequence* sequence = Find(handle);
  if (sequence == nullptr) {
    error = MakeError(Reason::kSequenceNotFound, absl::StrCat("no sequence ", handle),
                      {{"sequence", handle}});
    return nullptr;
  }
  if (sequence->length != start_length && !Injected(Fault::kStartUnchecked)) {
    error = MakeError(
        Reason::kLengthMismatch,
        absl::StrCat("sequence ", handle, " has length ", sequence->length,
                     ", the operation starts from ", start_length),
        {{"sequence", handle}, {"length", sequence->length}, {"start_length", start_length}});
    return nullptr;
  }
  return sequence;
}

void EngineCore::Touch(Sequence& sequence) {
  SaveSequence(sequence);
  if (sequence.touched_step == step_) return;
  sequence.touched_step = step_;
  sequence.length_before_step = sequence.length;
}

void EngineCore::SaveSequence(Sequence& sequence) {
  if (!journal_.active()) return;
  journal_.OnRollback([&sequence, copy = sequence] { sequence = copy; });
}

ContentView EngineCore::ContentAt(const Sequence& sequence, uint32_t index,
                                  std::vector<DigestMark>& marks) const {
  const uint32_t first = index * options_.block_tokens;
  ContentView view{
      sequence.tokens.data() + (first - sequence.token_base), options_.block_tokens, {}};
  if (sequence.digests != nullptr) {
    marks = MarksOf(*sequence.digests, first, options_.block_tokens);
    view.marks = marks;
  }
  return view;
}

}  // namespace quire
