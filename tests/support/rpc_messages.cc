#include "tests/support/rpc_messages.h"

#include <string>
#include <utility>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace quire::testing {
namespace {

template <typename Field, typename Values>
void Assign(Field* field, const Values& values) {
  field->Assign(values.begin(), values.end());
}

void Fill(const NamespaceParts& parts, v1::Namespace* out) {
  out->set_adapter(parts.adapter);
  out->set_salt(parts.salt);
  out->set_tenant(parts.tenant);
  out->set_weights_version(parts.weights_version);
}

template <typename Field>
void FillRetention(const std::vector<RetentionRange>& ranges, Field* field) {
  for (const RetentionRange& range : ranges) {
    v1::RetentionRange* out = field->Add();
    out->set_start(range.start);
    if (range.end != kRangeToEnd) out->set_end(range.end);
    out->set_priority(range.priority);
    if (range.duration) *out->mutable_duration() = ToMessage(*range.duration);
  }
}

template <typename Field>
void FillDigests(const std::vector<DigestRange>& digests, Field* field) {
  for (const DigestRange& range : digests) {
    v1::DigestRange* out = field->Add();
    out->set_start(range.start);
    out->set_end(range.end);
    out->set_digest(std::string(range.digest.begin(), range.digest.end()));
  }
}

void Fill(const BeginOp& op, v1::Operation* out) {
  v1::BeginOperation* begin = out->mutable_begin();
  begin->set_sequence(op.sequence);
  Assign(begin->mutable_tokens(), op.tokens);
  Fill(op.namespace_parts, begin->mutable_namespace_());
  if (op.allocate_tokens) begin->set_allocate_tokens(*op.allocate_tokens);
  begin->set_recompute_tail(op.recompute_tail);
  begin->set_skip_cache_read(op.skip_cache_read);
  FillRetention(op.retention, begin->mutable_retention());
  FillDigests(op.digests, begin->mutable_digests());
  begin->set_reserve_tokens(op.reserve_tokens);
  begin->set_reserve_sequences(op.reserve_sequences);
}

void Fill(const AdvanceOp& op, v1::Operation* out) {
  v1::AdvanceOperation* advance = out->mutable_advance();
  Assign(advance->mutable_sequences(), op.sequences);
  Assign(advance->mutable_start_lengths(), op.start_lengths);
  Assign(advance->mutable_tokens(), op.tokens);
  Assign(advance->mutable_token_counts(), op.token_counts);
  advance->set_ahead(op.ahead);
  Assign(advance->mutable_aheads(), op.aheads);
}

void Fill(const ExtendOp& op, v1::Operation* out) {
  out->mutable_extend()->set_sequence(op.sequence);
  out->mutable_extend()->set_start_length(op.start_length);
  out->mutable_extend()->set_slots(op.slots);
}

void Fill(const CommitOp& op, v1::Operation* out) {
  out->mutable_commit()->set_sequence(op.sequence);
  out->mutable_commit()->set_start_length(op.start_length);
  out->mutable_commit()->set_committed_length(op.committed_length);
}

void Fill(const ForkOp& op, v1::Operation* out) {
  out->mutable_fork()->set_sequence(op.sequence);
  out->mutable_fork()->set_start_length(op.start_length);
  Assign(out->mutable_fork()->mutable_children(), op.children);
}

void Fill(const TruncateOp& op, v1::Operation* out) {
  out->mutable_truncate()->set_sequence(op.sequence);
  out->mutable_truncate()->set_start_length(op.start_length);
  out->mutable_truncate()->set_length(op.length);
}

void Fill(const FinishOp& op, v1::Operation* out) {
  out->mutable_finish()->set_sequence(op.sequence);
  out->mutable_finish()->set_drop(op.drop);
  FillRetention(op.retention, out->mutable_finish()->mutable_retention());
}

NamespaceParts FromMessage(const v1::Namespace& message) {
  return {message.adapter(), message.salt(), message.tenant(), message.weights_version()};
}

std::vector<GroupTable> GroupsOf(const google::protobuf::RepeatedPtrField<v1::TableRun>& runs) {
  std::vector<GroupTable> groups(static_cast<size_t>(runs.size()));
  for (const v1::TableRun& run : runs) {
    for (const uint32_t block : run.blocks()) {
      groups.at(run.group()).blocks.push_back(BlockId{block});
    }
  }
  return groups;
}

}  // namespace

Duration FromMessage(const google::protobuf::Duration& duration) {
  return std::chrono::seconds(duration.seconds()) + std::chrono::nanoseconds(duration.nanos());
}

google::protobuf::Duration ToMessage(Duration duration) {
  google::protobuf::Duration message;
  message.set_seconds(duration.count() / 1'000'000'000);
  message.set_nanos(static_cast<int32_t>(duration.count() % 1'000'000'000));
  return message;
}

v1::StepBatch ToMessage(const StepParams& params) {
  v1::StepBatch batch;
  batch.set_lease_id(params.lease);
  batch.set_epoch(params.epoch);
  batch.set_step(params.step);
  batch.set_applied_step(params.applied_step);
  batch.set_completed_step(params.completed_step);
  batch.set_all_or_nothing(params.all_or_nothing);
  for (const Operation& operation : params.operations) {
    std::visit([&](const auto& op) { Fill(op, batch.add_operations()); }, operation);
  }
  return batch;
}

Error FromMessage(const v1::OperationError& error) {
  std::vector<ErrorDetail> details;
  for (const v1::ErrorNumber& number : error.numbers()) {
    details.emplace_back(number.name(), number.value());
  }
  return MakeError(static_cast<Reason>(error.reason()), error.message(), std::move(details));
}

StepResult FromMessage(const v1::StepAnswer& answer) {
  StepResult result;
  result.step = answer.step();
  for (const v1::TableRun& run : answer.table()) {
    result.runs.push_back({run.sequence(), run.group(), run.first_index(),
                           static_cast<uint32_t>(result.blocks.size()),
                           static_cast<uint32_t>(run.blocks_size())});
    for (const uint32_t block : run.blocks()) result.blocks.push_back(BlockId{block});
  }
  for (const v1::CopyOrder& copy : answer.copies()) {
    result.copies.push_back(
        {copy.group(), BlockId{copy.source()}, BlockId{copy.destination()}, copy.tokens()});
  }
  for (const v1::BeginResult& begin : answer.begins()) {
    result.begins.push_back(
        {begin.operation(), begin.reused_tokens(), begin.copied_tokens(), begin.length()});
  }
  for (const v1::ForkResult& fork : answer.forks()) {
    result.forks.push_back({fork.operation(), fork.length()});
  }
  for (const v1::OperationFailure& failure : answer.failures()) {
    result.failures.push_back({failure.operation(), failure.entry(),
                               static_cast<AdvancePart>(failure.part()), failure.reserved(),
                               FromMessage(failure.error())});
  }
  for (const v1::SequenceNotice& notice : answer.notices()) {
    result.notices.push_back({notice.sequence(), FromMessage(notice.error())});
  }
  result.pool = {answer.pool().free(), answer.pool().evictable(), answer.pool().fenced()};
  return result;
}

absl::Status FromCall(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  google::rpc::Status details;
  google::rpc::ErrorInfo info;
  if (!details.ParseFromString(status.error_details()) || details.details_size() != 1 ||
      !details.details(0).UnpackTo(&info) || info.domain() != "quire") {
    return absl::InternalError("call without an ErrorInfo: " + status.error_message());
  }
  v1::ErrorReason reason = v1::ERROR_REASON_UNSPECIFIED;
  v1::ErrorReason_Parse("ERROR_REASON_" + info.reason(), &reason);
  Error error = MakeError(static_cast<Reason>(reason), status.error_message());
  for (const auto& [name, value] : info.metadata()) error.details.emplace_back(name, value);
  return ToStatus(error);
}

v1::PrefixSelector ToMessage(const PrefixSelector& prefix) {
  v1::PrefixSelector message;
  message.set_model_fingerprint(prefix.model_fingerprint);
  Fill(prefix.namespace_parts, message.mutable_namespace_());
  Assign(message.mutable_tokens(), prefix.tokens);
  FillDigests(prefix.digests, message.mutable_digests());
  return message;
}

SequenceView FromMessage(const v1::SequenceTable& table) {
  SequenceView view;
  view.handle = table.sequence();
  view.committed = table.committed();
  view.length = table.length();
  view.reserved = table.reserved();
  view.groups = GroupsOf(table.groups());
  return view;
}

SequenceView FromMessage(const v1::Sequence& sequence) {
  SequenceView view;
  view.worker = sequence.worker();
  view.handle = sequence.handle();
  view.committed = sequence.committed();
  view.length = sequence.length();
  view.reserved = sequence.reserved();
  view.groups = GroupsOf(sequence.groups());
  view.namespace_parts = FromMessage(sequence.namespace_());
  view.claimed_blocks = sequence.claimed_blocks();
  view.waiting = sequence.waiting();
  return view;
}

WorkerView FromMessage(const v1::Worker& worker) {
  WorkerView view;
  view.name = worker.name();
  view.incarnation = worker.incarnation();
  view.lease_remaining = FromMessage(worker.lease_remaining());
  view.sequences = worker.sequences();
  view.last_step = worker.last_step();
  view.applied_step = worker.applied_step();
  view.completed_step = worker.completed_step();
  view.completed_age = FromMessage(worker.completed_age());
  view.fenced_blocks = worker.fenced_blocks();
  view.map_memory = worker.map_memory();
  view.model_fingerprint = worker.model_fingerprint();
  return view;
}

EngineStats FromMessage(const v1::Pool& pool) {
  EngineStats stats;
  stats.pool_name = pool.name();
  stats.block_count = pool.block_count();
  stats.block_bytes = pool.block_bytes();
  stats.block_tokens = pool.block_tokens();
  const v1::BlockCounts& blocks = pool.blocks();
  stats.blocks = {blocks.free(),    blocks.fenced(),  blocks.quarantined(),
                  blocks.filling(), blocks.pending(), blocks.referenced(),
                  blocks.idle(),    blocks.bad(),     blocks.dead()};
  stats.claimed_blocks = pool.claimed_blocks();
  stats.workers = pool.workers();
  stats.sequences = pool.sequences();
  stats.waiters = pool.waiters();
  stats.pins = pool.pins();
  stats.counters.prefix_tokens_queried = pool.prefix_tokens_queried();
  stats.counters.prefix_tokens_hit_whole = pool.prefix_tokens_hit();
  return stats;
}

AuditReport FromMessage(const v1::AuditPoolResponse& report) {
  AuditReport result;
  for (const v1::AuditFinding& finding : report.findings()) {
    AuditFinding& added = result.findings.emplace_back();
    added.rule = finding.rule();
    if (finding.has_block()) added.block = BlockId{finding.block()};
    added.owner = finding.owner();
    added.message = finding.message();
  }
  result.blocks_checked = report.blocks_checked();
  result.content_checked = report.content_checked();
  return result;
}

}  // namespace quire::testing
