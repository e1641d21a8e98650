// What others may see: tables, workers, sequences, statistics.
#include <algorithm>
#include <bit>

#include "absl/container/btree_map.h"
#include "absl/strings/str_cat.h"
#include "cache_service/engine/engine_core.h"

namespace quire {

SequenceView EngineCore::ViewOf(const Sequence& sequence, bool tables) const {
  SequenceView view;
  view.worker = workers_[sequence.worker]->name;
  view.handle = sequence.handle;
  view.committed = sequence.committed;
  view.length = sequence.length;
  view.reserved = sequence.reserved;
  view.namespace_parts = sequence.namespace_parts;
  view.claimed_blocks = sequence.claim ? sequence.claim->remaining : 0;
  view.waiting = waiters_.contains(sequence.serial);
  if (tables) {
    for (const std::vector<BlockId>& table : sequence.tables) view.groups.push_back({table});
  }
  return view;
}

absl::StatusOr<std::vector<SequenceView>> EngineCore::GetTables(
    const LeaseId& lease, Epoch epoch, std::span<const SequenceHandle> sequences,
    CallerTenant caller) {
  ApplyDue();
  absl::StatusOr<WorkerState*> found = FindLease(lease, epoch, caller);
  if (!found.ok()) return found.status();
  std::vector<const Sequence*> named;
  uint64_t entries = 0;
  for (const SequenceHandle handle : sequences) {
    const auto sequence = (*found)->sequences.find(handle);
    if (sequence == (*found)->sequences.end()) {
      return ToStatus(MakeError(Reason::kSequenceNotFound, absl::StrCat("no sequence ", handle),
                                {{"sequence", handle}}));
    }
    named.push_back(sequence->second.get());
    for (const std::vector<BlockId>& table : named.back()->tables) entries += table.size();
  }
  // Counted before anything is copied: a handle may be named many times.
  if (entries > options_.max_answer_entries) {
    return ToStatus(LimitExceeded("sequences", "their tables have too many entries", entries,
                                  options_.max_answer_entries));
  }
  std::vector<SequenceView> views;
  views.reserve(named.size());
  for (const Sequence* const sequence : named) views.push_back(ViewOf(*sequence, true));
  return views;
}

std::vector<WorkerView> EngineCore::ListWorkers() {
  ApplyDue();
  std::vector<WorkerView> views;
  for (const auto& worker : workers_) {
    if (worker == nullptr) continue;
    WorkerView view;
    view.name = worker->name;
    view.incarnation = worker->incarnation;
    view.lease_remaining = worker->deadline - now_;
    view.sequences = static_cast<uint32_t>(worker->sequences.size());
    view.last_step = worker->last_step;
    view.applied_step = worker->applied_step;
    view.completed_step = worker->completed_step;
    view.completed_age = now_ - worker->completed_at;
    for (const LogEntry& entry : worker->log) {
      view.fenced_blocks += entry.kind == LogKind::kReleased &&
                            pool_.FenceStep(entry.block, worker->slot) == entry.step;
    }
    view.map_memory = worker->map_memory;
    view.model_fingerprint = worker->model_fingerprint;
    views.push_back(std::move(view));
  }
  std::sort(views.begin(), views.end(),
            [](const WorkerView& a, const WorkerView& b) { return a.name < b.name; });
  return views;
}

std::vector<SequenceView> EngineCore::ListSequences(std::string_view name) {
  ApplyDue();
  std::vector<SequenceView> views;
  for (const auto& worker : workers_) {
    if (worker == nullptr || (!name.empty() && worker->name != name)) continue;
    for (const auto& [handle, sequence] : worker->sequences) {
      views.push_back(ViewOf(*sequence, false));
    }
  }
  std::sort(views.begin(), views.end(), [](const SequenceView& a, const SequenceView& b) {
    return a.worker != b.worker ? a.worker < b.worker : a.handle < b.handle;
  });
  return views;
}

absl::StatusOr<SequenceView> EngineCore::GetSequence(std::string_view name, SequenceHandle handle) {
  ApplyDue();
  const auto worker = worker_names_.find(std::string(name));
  if (worker == worker_names_.end()) {
    return ToStatus(WorkerNotFound(name));
  }
  const auto& sequences = workers_[worker->second]->sequences;
  const auto found = sequences.find(handle);
  if (found == sequences.end()) {
    return ToStatus(MakeError(Reason::kSequenceNotFound, absl::StrCat("no sequence ", handle),
                              {{"sequence", handle}}));
  }
  return ViewOf(*found->second, true);
}

std::vector<UnavailableView> EngineCore::ListUnavailable() {
  ApplyDue();
  std::vector<UnavailableView> views;
  for (const WorkerView& worker : ListWorkers()) {
    const WorkerState& state = *workers_[worker_names_.at(worker.name)];
    views.push_back({worker.name, worker.incarnation, worker.fenced_blocks, 0, Duration::zero(),
                     state.claimed, pool_.HeldBy(state.slot)});
  }
  for (const Quarantine& quarantine : quarantines_) {
    views.push_back({quarantine.worker, quarantine.incarnation, 0, quarantine.blocks.size(),
                     now_ - quarantine.since, 0, 0});
  }
  return views;
}

// --- Statistics ---

void PowerHistogram::Add(uint64_t value, uint64_t times) {
  counts[std::min<size_t>(kBuckets - 1, static_cast<size_t>(std::bit_width(value)))] += times;
  count += times;
  sum += static_cast<double>(value) * static_cast<double>(times);
}

uint64_t EngineCore::LiveSequences() {
  ApplyDue();
  return live_sequences_;
}

BlockStateCounts EngineCore::CountsOf(uint32_t group) const {
  BlockStateCounts counts;
  counts.fenced = pool_.CountIn(BlockState::kFenced, group);
  counts.quarantined = pool_.CountIn(BlockState::kQuarantined, group);
  counts.filling = pool_.CountIn(BlockState::kFilling, group);
  counts.pending = pool_.CountIn(BlockState::kPending, group);
  counts.referenced = pool_.CountIn(BlockState::kReferenced, group);
  counts.idle = pool_.CountIn(BlockState::kIdle, group);
  counts.bad = pool_.CountIn(BlockState::kBad, group);
  return counts;
}

std::string EngineCore::LabelOf(const std::string& tenant) const {
  return tenants_.contains(tenant) ? tenant : kOtherTenants;
}

EngineStats EngineCore::Stats() {
  ApplyDue();
  EngineStats stats;
  stats.pool_name = options_.pool_name;
  stats.block_count = pool_.size();
  stats.block_bytes = options_.block_bytes;
  stats.block_tokens = options_.block_tokens;
  stats.blocks = {pool_.CountIn(BlockState::kFree),
                  pool_.CountIn(BlockState::kFenced),
                  pool_.CountIn(BlockState::kQuarantined),
                  pool_.CountIn(BlockState::kFilling),
                  pool_.CountIn(BlockState::kPending),
                  pool_.CountIn(BlockState::kReferenced),
                  pool_.CountIn(BlockState::kIdle),
                  pool_.CountIn(BlockState::kBad),
                  pool_.dead()};
  stats.sequences = live_sequences_;
  stats.waiters = waiters_.size();
  stats.workers = stats.leases = leases_.size();
  stats.pins = pins_.size();
  for (const auto& [id, pin] : pins_) stats.pinned_blocks += pin.blocks.size();
  for (uint32_t group = 0; group < groups(); ++group) stats.groups.push_back(CountsOf(group));
  for (const auto& [name, tenant] : tenants_) stats.tenants[name] = *tenant;
  stats.unavailable = ListUnavailable();
  stats.claimed_blocks = claimed_;
  stats.namespaces = tree_.roots();
  stats.tree_nodes = tree_.nodes() - tree_.roots();
  // Blocks that are not sealed are in the tables of few sequences and partly used.
  absl::flat_hash_map<BlockId, uint32_t> partly_used;
  for (const auto& worker : workers_) {
    if (worker == nullptr) continue;
    stats.worker_stats.push_back({worker->name, now_ - worker->completed_at});
    for (const auto& [handle, sequence] : worker->sequences) {
      ++stats.tenants[LabelOf(sequence->namespace_parts.tenant)].sequences;
      for (const std::vector<BlockId>& table : sequence->tables) {
        for (auto i = static_cast<uint32_t>(table.size()); i-- > 0;) {
          if (table[i] == kNoBlock || pool_.Get(table[i]).Has(kSealedFlag)) break;
          const uint32_t first = i * options_.block_tokens;
          const uint32_t used = sequence->length > first
                                    ? std::min(options_.block_tokens, sequence->length - first)
                                    : 0;
          uint32_t& most = partly_used[table[i]];
          most = std::max(most, used);
        }
      }
    }
  }
  stats.allocated_slots = pool_.tabled() * options_.block_tokens;
  stats.used_slots = (pool_.tabled() - partly_used.size()) * options_.block_tokens;
  for (const auto& [block, used] : partly_used) stats.used_slots += used;
  if (const BlockId oldest = pool_.OldestIdle(); oldest != kNoBlock) {
    stats.oldest_idle_age =
        std::chrono::milliseconds(pool_.now_ms() - pool_.Get(oldest).idle_since_ms);
  }
  for (const Quarantine& quarantine : quarantines_) {
    if (now_ - quarantine.since > options_.fence_timeout) {
      stats.quarantine_alarms += quarantine.blocks.size();
    }
  }
  stats.draining = draining_;
  stats.counters = counters_;
  stats.operations_per_step = operations_per_step_;
  stats.block_lifetime_ns = block_lifetime_ns_;
  stats.idle_before_eviction_ns = idle_before_eviction_ns_;
  stats.reuse_gap_ns = reuse_gap_ns_;
  return stats;
}

}  // namespace quire
