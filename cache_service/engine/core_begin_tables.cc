// Begin: the sequence and its tables, once there is room for them (P4).
#include <algorithm>
#include <utility>

#include "cache_service/engine/block_pool_chains.h"
#include "cache_service/engine/engine_core.h"

namespace quire {

Sequence& EngineCore::CreateSequence(const BeginOp& op, const BeginPlan& plan,
                                     std::string_view key) {
  SequenceStore::Owned owned = sequence_store_.New();
  Sequence& sequence = *owned;
  sequence.handle = op.sequence;
  sequence.worker = worker_->slot;
  journal_.Save(next_serial_);
  sequence.serial = next_serial_++;
  sequence.root = tree_.GetRoot(key);
  tree_.UseRoot(sequence.root);
  sequence.committed = plan.hit.Tokens(options_.block_tokens);
  sequence.length = sequence.reserved = plan.length;
  sequence.given = static_cast<uint32_t>(op.tokens.size());
  sequence.sealed = plan.hit.whole_blocks;
  StandOn(sequence, plan.hit.path.empty() ? sequence.root : plan.hit.path.back());
  sequence.publishes = worker_->map_memory || options_.memory == PoolMemoryKind::kWorker;
  sequence.touched_step = step_;
  sequence.length_before_step = sequence.committed;
  sequence.token_base = sequence.sealed * options_.block_tokens;
  sequence.tokens.assign(op.tokens.begin() + sequence.token_base, op.tokens.end());
  if (!op.digests.empty()) {
    sequence.digests = std::make_shared<const std::vector<DigestRange>>(op.digests);
  }
  sequence.retention = op.retention;
  sequence.namespace_parts = op.namespace_parts;
  sequence.tables.resize(groups());
  sequence.window_start.assign(groups(), 0);
  if (op.reserve_tokens > 0) {
    sequence.claim = std::make_shared<Claim>();
    sequence.claim->worker = worker_->slot;
    sequence.claim->reserve_tokens = op.reserve_tokens;
    sequence.claim->forks_left = std::max(1u, op.reserve_sequences) - 1;
    sequence.claim->blocks_per_sequence = BlocksPromised(op);
    sequence.claim->members = {&sequence};
  }
  journal_.Save(live_sequences_);
  ++live_sequences_;
  worker_->sequences.emplace(op.sequence, std::move(owned));
  journal_.OnRollback(
      [worker = worker_, handle = op.sequence] { worker->sequences.erase(handle); });
  return sequence;
}

// Takes blocks until every table has `count` entries.
void EngineCore::TakeBlocks(Sequence& sequence, uint32_t count) {
  std::vector<BlockId>& first_table = sequence.tables[0];
  if (pool_.plain() && claimed_ == worker_->claimed && first_table.size() < count) {
    const size_t held = first_table.size();
    const size_t taken =
        std::min<uint64_t>(count - held, pool_.OpenFree() + pool_.OwnFree(worker_->slot));
    first_table.resize(count);
    pool_.TakeFreeRun(worker_->slot, std::span(first_table).subspan(held, taken));
    TakeVictims(std::span(first_table).subspan(held + taken));
    counters_.blocks_allocated += count - held;
    worker_->table_entries += count - held;
    return;
  }
  for (auto i = static_cast<uint32_t>(first_table.size()); i < count; ++i) {
    for (uint32_t group = 0; group < groups(); ++group) {
      if (sequence.tables[group].size() > i) continue;
      AddEntry(sequence, group, TakeBlock(group));
    }
  }
}

void EngineCore::HoldPlainHit(Sequence& sequence, const Hit& hit) {
  // Blocks of one prompt mostly became idle at one time.
  uint32_t since = 0;
  uint64_t count = 0;
  const auto flush = [&] {
    if (count > 0) reuse_gap_ns_.Add(uint64_t{pool_.now_ms() - since} * 1000000, count);
    count = 0;
  };
  pool_.HoldChain(
      hit.blocks, worker_->slot,
      [&](size_t i) { return i > 0 && tree_.AddBlockersPlainly(hit.path[i - 1], 1) == 1; },
      [&](const Block& block) {
        if (block.idle_since_ms != since) flush();
        since = block.idle_since_ms;
        ++count;
      });
  flush();
  sequence.tables[0] = hit.blocks;
  worker_->table_entries += hit.blocks.size();
}

void EngineCore::HoldHit(Sequence& sequence, const Hit& hit) {
  for (std::vector<BlockId>& table : sequence.tables) table.reserve(BlocksFor(sequence.length));
  if (hit.plain && pool_.plain() && sequence.retention.empty() && options_.content_sample == 0) {
    HoldPlainHit(sequence, hit);
    return;
  }
  VisitHitBlocks(hit, worker_->slot, [&](uint32_t group, uint32_t index, BlockId block) {
    if (block == kNoBlock) {
      sequence.window_start[group] = index + 1;
    } else {
      const Block& record = pool_.Get(block);
      if (record.state == BlockState::kIdle) {
        reuse_gap_ns_.Add(uint64_t{pool_.now_ms() - record.idle_since_ms} * 1000000);
      }
      Ref(block, worker_->slot);
      SampleHit(block);
      if (!sequence.retention.empty()) ApplyRetention(sequence, block, index);
    }
    sequence.tables[group].push_back(block);
  });
  for (const std::vector<BlockId>& table : sequence.tables) {
    journal_.Save(worker_->table_entries);
    worker_->table_entries += table.size();
  }
}

// The partly matching block is copied to a private one, a copy order per group.
void EngineCore::CopyPartial(Sequence& sequence, const Hit& hit) {
  if (hit.source == kNoNode) return;
  // All sources are held before anything is evicted.
  for (uint32_t group = 0; group < groups(); ++group) {
    Hold(VisibleBlock(hit.source, group, worker_->slot));
  }
  for (uint32_t group = 0; group < groups(); ++group) {
    const BlockId source = VisibleBlock(hit.source, group, worker_->slot);
    Log(source, LogKind::kCopied);
    const BlockId destination = TakeBlock(group);
    AddEntry(sequence, group, destination);
    Hold(destination);
    Log(destination, LogKind::kCopied);
    out_->copies.push_back({group, source, destination, hit.partial_tokens});
    ++counters_.copies;
    counters_.copied_tokens += hit.partial_tokens;
  }
}

}  // namespace quire
