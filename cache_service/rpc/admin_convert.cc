#include "cache_service/rpc/admin_convert.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_service/base/error.h"
#include "cache_service/rpc/proto_convert.h"

namespace quire {
namespace {

void FillCounts(const BlockStateCounts& counts, v1::BlockCounts* out) {
  out->set_free(counts.free);
  out->set_fenced(counts.fenced);
  out->set_quarantined(counts.quarantined);
  out->set_filling(counts.filling);
  out->set_pending(counts.pending);
  out->set_referenced(counts.referenced);
  out->set_idle(counts.idle);
  out->set_bad(counts.bad);
  out->set_dead(counts.dead);
}

void FillStats(const EngineStats& stats, v1::Pool* out) {
  out->set_block_tokens(stats.block_tokens);
  out->set_block_count(static_cast<uint32_t>(stats.block_count));
  out->set_block_bytes(stats.block_bytes);
  FillCounts(stats.blocks, out->mutable_blocks());
  out->set_claimed_blocks(stats.claimed_blocks);
  out->set_workers(static_cast<uint32_t>(stats.workers));
  out->set_sequences(static_cast<uint32_t>(stats.sequences));
  out->set_waiters(static_cast<uint32_t>(stats.waiters));
  out->set_pins(static_cast<uint32_t>(stats.pins));
  out->set_pinned_blocks(stats.pinned_blocks);
  out->set_prefix_tokens_queried(stats.counters.prefix_tokens_queried);
  out->set_prefix_tokens_hit(stats.counters.prefix_tokens_hit_whole +
                             stats.counters.prefix_tokens_hit_partial);
}

void FillUnavailable(const UnavailableView& view, v1::UnavailableBlocks* out) {
  out->set_worker(view.worker);
  out->set_incarnation(view.incarnation);
  out->set_fenced(view.fenced);
  out->set_quarantined(view.quarantined);
  if (view.quarantined > 0) ToProto(view.quarantined_for, out->mutable_quarantined_for());
  out->set_claimed(view.claimed);
  out->set_held(view.held);
}

}  // namespace

void FillPool(const Pool& pool, v1::Pool* out) {
  const EngineOptions& configured = pool.options().engine;
  out->set_name(pool.name());
  out->set_tier("device");
  out->set_memory(configured.memory == PoolMemoryKind::kShared ? v1::POOL_MEMORY_SHARED
                                                               : v1::POOL_MEMORY_WORKER);
  out->set_epoch(configured.epoch);
  const EngineStats stats = pool.Stats();
  FillStats(stats, out);
  if (const absl::Status memory = pool.CheckMemory(); !memory.ok()) {
    out->set_memory_problem(std::string(memory.message()));
  }
  CacheEngine* engine = pool.engine();
  if (engine == nullptr) return;
  out->set_layout_known(true);
  out->set_max_sequence_tokens(engine->options().max_sequence_tokens);
  for (size_t i = 0; i < pool.layout().groups.size(); ++i) {
    ToProto(pool.layout().groups[i], pool.layout().PaddingBytes(i), out->add_groups());
  }
  for (const UnavailableView& view : stats.unavailable) {
    FillUnavailable(view, out->add_unavailable());
  }
}

void FillWorker(const WorkerView& worker, const std::string& pool, v1::Worker* out) {
  out->set_name(worker.name);
  out->set_incarnation(worker.incarnation);
  out->set_pool(pool);
  ToProto(worker.lease_remaining, out->mutable_lease_remaining());
  out->set_sequences(worker.sequences);
  out->set_last_step(worker.last_step);
  out->set_applied_step(worker.applied_step);
  out->set_completed_step(worker.completed_step);
  ToProto(worker.completed_age, out->mutable_completed_age());
  out->set_fenced_blocks(worker.fenced_blocks);
  out->set_map_memory(worker.map_memory);
  out->set_model_fingerprint(worker.model_fingerprint);
}

void FillSequence(const SequenceView& sequence, v1::Sequence* out) {
  out->set_worker(sequence.worker);
  out->set_handle(sequence.handle);
  out->set_committed(sequence.committed);
  out->set_length(sequence.length);
  out->set_reserved(sequence.reserved);
  ToProto(sequence.handle, sequence.groups, out->mutable_groups());
  ToProto(sequence.namespace_parts, out->mutable_namespace_());
  out->set_claimed_blocks(sequence.claimed_blocks);
  out->set_waiting(sequence.waiting);
}

void FillPin(const PinView& pin, v1::Pin* out) {
  out->set_pin_id(pin.pin_id);
  out->set_owner(pin.owner);
  out->set_blocks(pin.blocks);
  ToProto(pin.remaining, out->mutable_remaining());
}

void FillAudit(const AuditReport& report, v1::AuditPoolResponse* out) {
  // A broken pool may have more findings than a message holds; the first ones tell the story.
  constexpr size_t kMostFindings = 1000;
  for (const AuditFinding& finding : report.findings) {
    if (static_cast<size_t>(out->findings_size()) == kMostFindings) break;
    v1::AuditFinding* proto = out->add_findings();
    proto->set_rule(finding.rule);
    if (finding.block.has_value()) proto->set_block(Index(*finding.block));
    proto->set_owner(finding.owner);
    proto->set_message(finding.message);
  }
  out->set_blocks_checked(report.blocks_checked);
  out->set_content_checked(report.content_checked);
}

absl::Status OfPrefix(const absl::Status& status) {
  Error error = FromStatus(status);
  if (error.reason != Reason::kInvalidArgument) return status;
  error.message = absl::StrCat("prefix.", error.message);
  for (ErrorDetail& detail : error.details) {
    if (detail.name == "field") detail.value = absl::StrCat("prefix.", detail.value);
  }
  return ToStatus(error);
}

absl::StatusOr<PrefixSelector> FromProto(const v1::PrefixSelector& prefix, const Caller& caller) {
  auto parts = FromProto(prefix.namespace_(), caller);
  if (!parts.ok()) return parts.status();
  auto digests = FromProto(prefix.digests(), "prefix.digests");
  if (!digests.ok()) return digests.status();
  // Also where no layout is known and no engine judges.
  if (Error error = ValidateNamespace(*parts); !error.ok()) return OfPrefix(ToStatus(error));
  const auto tokens = static_cast<uint64_t>(prefix.tokens_size());
  if (Error error = ValidateDigests(*digests, tokens); !error.ok()) {
    return OfPrefix(ToStatus(error));
  }
  return PrefixSelector{.model_fingerprint = prefix.model_fingerprint(),
                        .namespace_parts = *std::move(parts),
                        .tokens = View(prefix.tokens()),
                        .digests = *std::move(digests)};
}

std::string SequenceKey(const std::string& worker, SequenceHandle handle) {
  // A zero byte sorts before every other, as the end of a name does.
  std::string key = worker;
  key.push_back('\0');
  return absl::StrCat(key, absl::Hex(handle, absl::kZeroPad16));
}

}  // namespace quire
