// Begin: look up, hold and allocate in one atomic operation (P4).
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
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
    return InvalidArgument(
        "reserve_sequences", "more than a worker may have",
        {{"given", op.reserve_sequences}, {"limit", options_.max_sequences_per_worker}});
  }
  if (Error error = ValidateNamespace(op.namespace_parts); !error.ok()) return error;
  if (Error error = ValidateRetention(op.retention); !error.ok()) return error;
  if (Error error = ValidateDigests(op.digests, op.tokens.size()); !error.ok()) return error;
  if (draining_) return MakeError(Reason::kDraining, "the server admits no sequences");
  if (worker_->sequences.size() >= options_.max_sequences_per_worker) {
    return TooManySequences(1);
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
  if (groups_.has_windows) FitWindows(hit, worker_->slot);
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
    return TooManyEntries(entries);
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

}  // namespace quire
