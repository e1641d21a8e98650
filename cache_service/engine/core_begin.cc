// Begin: look up, hold and allocate in one atomic operation (P4).
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_service/engine/block_pool_chains.h"
#include "cache_service/engine/engine_core.h"

namespace quire {

Error EngineCore::ValidateBegin(const BeginOp& op) const {
  if (worker_->sequences.contains(op.sequence)) {
    return MakeError(Reason::kSequenceExists, absl::StrCat("sequence ", op.sequence, " exists"),
                     {{"sequence", op.sequence}});
  }
  if (op.tokens.empty()) return InvalidArgument("tokens", "a prompt has at least one token");
  const uint32_t longest = options_.max_sequence_tokens;
  if (op.tokens.size() > longest) {
    return InvalidArgument("tokens", "longer than max_sequence_tokens",
                           {{"limit", longest}, {"given", op.tokens.size()}});
  }
  if (op.reserve_tokens > longest) {
    return InvalidArgument("reserve_tokens", "longer than max_sequence_tokens",
                           {{"limit", longest}, {"given", op.reserve_tokens}});
  }
  if (op.reserve_tokens > 0 && op.reserve_tokens < op.tokens.size()) {
    return InvalidArgument("reserve_tokens", "less than the prompt",
                           {{"limit", op.tokens.size()}, {"given", op.reserve_tokens}});
  }
  if (op.reserve_sequences > options_.max_sequences_per_worker) {
    return InvalidArgument("reserve_sequences", "more than a worker may have",
                           {{"limit", options_.max_sequences_per_worker}});
  }
  if (Error error = ValidateNamespace(op.namespace_parts); !error.ok()) return error;
  if (Error error = ValidateRetention(op.retention); !error.ok()) return error;
  if (Error error = ValidateDigests(op.digests, op.tokens.size()); !error.ok()) return error;
  if (draining_) return MakeError(Reason::kDraining, "the server admits no sequences");
  if (worker_->sequences.size() >= options_.max_sequences_per_worker) {
    return MakeError(Reason::kLimitExceeded, "too many sequences of this worker",
                     {{"limit", options_.max_sequences_per_worker}});
  }
  return {};
}

// Blocks of the hit that would otherwise be available, or back what is promised to another worker.
void EngineCore::CountIdleHits(const Hit& hit, BeginPlan& plan) const {
  const auto count = [&](BlockId block) {
    if (block == kNoBlock || pool_.Get(block).place == Place::kNone) return;
    const WorkerSlot fenced_by = pool_.Get(block).place_worker;
    if (!pool_.AvailableTo(block, worker_->slot) && workers_[fenced_by]->claimed == 0) return;
    ++plan.idle_hits;
    plan.shared_hits += fenced_by != worker_->slot;
  };
  VisitHitBlocks(hit, worker_->slot, [&](uint32_t, uint32_t, BlockId block) { count(block); });
  for (uint32_t group = 0; hit.source != kNoNode && group < groups(); ++group) {
    count(VisibleBlock(hit.source, group, worker_->slot));
  }
}

EngineCore::BeginPlan EngineCore::PlanBegin(const BeginOp& op, Hit hit) const {
  BeginPlan plan;
  const auto prompt = static_cast<uint32_t>(op.tokens.size());
  const uint32_t reused = hit.Tokens(options_.block_tokens);
  const uint64_t wanted = op.allocate_tokens ? uint64_t{reused} + *op.allocate_tokens : prompt;
  plan.length = static_cast<uint32_t>(std::min<uint64_t>(wanted, prompt));
  plan.new_blocks = uint64_t{BlocksFor(plan.length) - hit.whole_blocks} * groups();
  if (op.reserve_tokens > 0) {
    uint64_t held = plan.new_blocks;
    VisitHitBlocks(hit, worker_->slot,
                   [&](uint32_t, uint32_t, BlockId block) { held += block != kNoBlock; });
    const uint64_t per_sequence = BlocksPromised(op);
    plan.claim_blocks = per_sequence * std::max(1u, op.reserve_sequences);
    plan.claim_blocks -= std::min(plan.claim_blocks, std::min(per_sequence, held));
  }
  // Where there is room even if all are idle, nobody asks how many are.
  const uint64_t hits = (hit.path.size() + 1) * groups();
  const bool roomy = plan.new_blocks + plan.claim_blocks + hits <= Headroom(*worker_) &&
                     (claimed_ == worker_->claimed || hits <= OpenRoom(*worker_)) &&
                     waiters_.empty() && !(options_.watermark > 0);
  if (!roomy) CountIdleHits(hit, plan);
  plan.hit = std::move(hit);
  return plan;
}

// Blocks that the plan takes beyond what it may take; 0: it can be carried out.
uint64_t EngineCore::Deficit(const BeginPlan& plan, const Sequence** waiter) {
  const auto excess = [](uint64_t wanted, uint64_t there) {
    return wanted > there ? wanted - there : 0;
  };
  const uint64_t taken = plan.new_blocks + plan.idle_hits;
  const uint64_t wanted = taken + plan.claim_blocks;
  uint64_t deficit = excess(wanted, Headroom(*worker_));
  // The worker's own blocks are no substitute for a block that others may have to take.
  deficit = std::max(deficit, excess(plan.shared_hits, OpenRoom(*worker_)));
  *waiter = wanted > 0 ? OldestWaiter(~uint64_t{0}) : nullptr;
  if (*waiter != nullptr) deficit = wanted;
  if (live_sequences_ == 0) return deficit;
  const auto kept = static_cast<uint64_t>(options_.watermark * static_cast<double>(pool_.size()));
  return std::max(deficit, excess(taken + kept, pool_.Available(worker_->slot)));
}

// The next shorter hit that may fit: less the partial block, then less whole blocks, but only where
// the begin wants slots for some tokens only, or where they are promised to others; else they would
// be needed again.
bool EngineCore::ShortenHit(const BeginOp& op, uint64_t deficit, bool promised, Hit& hit) const {
  if (hit.source == kNoNode) {
    if (hit.whole_blocks == 0 || (!op.allocate_tokens && !promised)) return false;
    const uint64_t given_up = (deficit + groups() - 1) / groups();
    hit.Shorten(
        static_cast<uint32_t>(hit.whole_blocks - std::min<uint64_t>(hit.whole_blocks, given_up)));
  }
  hit.source = kNoNode;
  hit.partial_tokens = 0;
  if (has_windows_) FitWindows(hit, worker_->slot);
  return true;
}

Error EngineCore::Begin(const BeginOp& op) {
  if (Error error = ValidateBegin(op); !error.ok()) return error;
  const std::string key =
      NamespaceKey(worker_->model_fingerprint, options_.layout_tag, op.namespace_parts);
  Hit hit;
  if (!op.skip_cache_read) {
    hit = FindHit(tree_.FindRoot(key), op.tokens, op.digests, worker_->slot, op.recompute_tail);
  }
  BeginPlan plan = PlanBegin(op, std::move(hit));
  const uint64_t best_hit = plan.hit.whole_blocks;
  const Sequence* waiter = nullptr;
  while (const uint64_t deficit = Deficit(plan, &waiter)) {
    Hit shorter = plan.hit;
    const bool promised = plan.shared_hits > OpenRoom(*worker_);
    if (!ShortenHit(op, deficit, promised, shorter)) {
      ++counters_.shortages;
      return ShortageError({.needed = plan.new_blocks + plan.claim_blocks,
                            .hit_blocks = best_hit,
                            .idle_hits = plan.idle_hits,
                            .is_begin = true,
                            .waiter = waiter});
    }
    plan = PlanBegin(op, std::move(shorter));
  }
  const uint64_t entries = uint64_t{BlocksFor(plan.length)} * groups();
  if (worker_->table_entries + entries > options_.max_table_entries_per_worker) {
    return MakeError(Reason::kLimitExceeded, "too many table entries of this worker",
                     {{"limit", options_.max_table_entries_per_worker}});
  }
  Sequence& sequence = CreateSequence(op, plan, key);
  HoldHit(sequence, plan.hit);
  CopyPartial(sequence, plan.hit);
  TakeBlocks(sequence, BlocksFor(plan.length));
  for (uint32_t group = 0; group < groups(); ++group) AppendTable(sequence, group);
  if (sequence.claim) UpdateClaim(sequence.claim, 0);
  out_->begins.push_back({operation_, sequence.committed, plan.hit.partial_tokens, plan.length});
  CountBegin(op, sequence.committed, plan.hit.partial_tokens);
  return {};
}

void EngineCore::CountBegin(const BeginOp& op, uint32_t hit, uint32_t partial) {
  TenantStats& tenant = StatsOf(op.namespace_parts.tenant);
  journal_.Save(tenant);
  ++tenant.begins;
  ++counters_.begins;
  if (op.skip_cache_read) return;
  tenant.prefix_tokens_queried += op.tokens.size();
  tenant.prefix_tokens_hit_whole += hit - partial;
  tenant.prefix_tokens_hit_partial += partial;
  counters_.prefix_tokens_queried += op.tokens.size();
  counters_.prefix_tokens_hit_whole += hit - partial;
  counters_.prefix_tokens_hit_partial += partial;
}

TenantStats& EngineCore::StatsOf(const std::string& tenant) {
  const auto known = tenants_.find(tenant);
  if (known != tenants_.end()) return *known->second;
  const bool own = tenants_.size() < kMostTenants && tenant.size() <= kMostTenantBytes;
  auto& stats = tenants_[own ? tenant : kOtherTenants];
  if (stats == nullptr) stats = std::make_unique<TenantStats>();
  return *stats;
}

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
  sequence.digests = op.digests;
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
