#include "worker/client/proto_convert.h"

#include <chrono>
#include <type_traits>

namespace quire::client {
namespace {

template <typename Repeated, typename Values>
void Assign(Repeated& field, const Values& values) {
  field.Assign(values.begin(), values.end());
}

void ToProto(std::chrono::nanoseconds duration, google::protobuf::Duration& proto) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration);
  proto.set_seconds(seconds.count());
  proto.set_nanos(static_cast<int32_t>((duration - seconds).count()));
}

template <typename Repeated>
void ToProto(const std::vector<RetentionRange>& ranges, Repeated& field) {
  for (const RetentionRange& range : ranges) {
    v1::RetentionRange& proto = *field.Add();
    proto.set_start(range.start);
    if (range.end.has_value()) proto.set_end(*range.end);
    proto.set_priority(range.priority);
    if (range.duration.has_value()) ToProto(*range.duration, *proto.mutable_duration());
  }
}

void ToProto(const BeginParams& params, v1::Operation& operation) {
  v1::BeginOperation& proto = *operation.mutable_begin();
  proto.set_sequence(params.sequence);
  Assign(*proto.mutable_tokens(), params.tokens);
  v1::Namespace& name_space = *proto.mutable_namespace_();
  name_space.set_adapter(params.name_space.adapter);
  name_space.set_salt(params.name_space.salt);
  name_space.set_tenant(params.name_space.tenant);
  name_space.set_weights_version(params.name_space.weights_version);
  if (params.allocate_tokens.has_value()) proto.set_allocate_tokens(*params.allocate_tokens);
  proto.set_recompute_tail(params.recompute_tail);
  proto.set_skip_cache_read(params.skip_cache_read);
  ToProto(params.retention, *proto.mutable_retention());
  for (const DigestRange& digest : params.digests) {
    v1::DigestRange& range = *proto.add_digests();
    range.set_start(digest.start);
    range.set_end(digest.end);
    range.set_digest(digest.digest);
  }
  proto.set_reserve_tokens(params.reserve_tokens);
  proto.set_reserve_sequences(params.reserve_sequences);
}

void ToProto(const AdvanceColumns& columns, v1::Operation& operation) {
  v1::AdvanceOperation& proto = *operation.mutable_advance();
  Assign(*proto.mutable_sequences(), columns.sequences);
  Assign(*proto.mutable_start_lengths(), columns.start_lengths);
  Assign(*proto.mutable_tokens(), columns.tokens);
  Assign(*proto.mutable_token_counts(), columns.token_counts);
  Assign(*proto.mutable_aheads(), columns.aheads);
}

void ToProto(const ExtendParams& params, v1::Operation& operation) {
  v1::ExtendOperation& proto = *operation.mutable_extend();
  proto.set_sequence(params.sequence);
  proto.set_start_length(params.start_length);
  proto.set_slots(params.slots);
}

void ToProto(const CommitParams& params, v1::Operation& operation) {
  v1::CommitOperation& proto = *operation.mutable_commit();
  proto.set_sequence(params.sequence);
  proto.set_start_length(params.start_length);
  proto.set_committed_length(params.committed_length);
}

void ToProto(const ForkParams& params, v1::Operation& operation) {
  v1::ForkOperation& proto = *operation.mutable_fork();
  proto.set_sequence(params.sequence);
  proto.set_start_length(params.start_length);
  Assign(*proto.mutable_children(), params.children);
}

void ToProto(const TruncateParams& params, v1::Operation& operation) {
  v1::TruncateOperation& proto = *operation.mutable_truncate();
  proto.set_sequence(params.sequence);
  proto.set_start_length(params.start_length);
  proto.set_length(params.length);
}

void ToProto(const FinishParams& params, v1::Operation& operation) {
  v1::FinishOperation& proto = *operation.mutable_finish();
  proto.set_sequence(params.sequence);
  proto.set_drop(params.drop);
  ToProto(params.retention, *proto.mutable_retention());
}

BlockIndex FromWire(uint32_t block) { return static_cast<BlockIndex>(block); }

TableRun FromProto(const v1::TableRun& proto) {
  TableRun run{proto.sequence(), proto.group(), proto.first_index(), {}};
  run.blocks.reserve(static_cast<size_t>(proto.blocks_size()));
  for (const uint32_t block : proto.blocks()) run.blocks.push_back(FromWire(block));
  return run;
}

OperationFailure FromProto(const v1::OperationFailure& proto) {
  return {.id = {proto.operation(), proto.entry()},
          .part = static_cast<AdvancePart>(proto.part()),
          .reserved = proto.reserved(),
          .error = client::FromProto(proto.error())};
}

}  // namespace

void ToProto(const Step& step, v1::StepBatch& batch) {
  batch.set_all_or_nothing(step.all_or_nothing());
  for (const Operation& operation : step.operations()) {
    std::visit([&](const auto& params) { ToProto(params, *batch.add_operations()); }, operation);
  }
}

void ToProto(const ModelLayout& layout, v1::ModelLayout& proto) {
  proto.set_dtype(static_cast<v1::Dtype>(layout.dtype));
  proto.set_kv_heads(layout.kv_heads);
  proto.set_head_dim(layout.head_dim);
  if (layout.groups.empty()) Assign(*proto.mutable_layer_windows(), layout.layer_windows);
  for (const LayerGroup& group : layout.groups) {
    v1::LayerGroup& added = *proto.add_groups();
    added.set_kind(group.window_tokens == 0 ? v1::GROUP_KIND_FULL : v1::GROUP_KIND_WINDOW);
    added.set_window_tokens(group.window_tokens);
    Assign(*added.mutable_layers(), group.layers);
  }
}

StepAnswer FromProto(const v1::StepAnswer& proto) {
  StepAnswer answer;
  answer.step = proto.step();
  for (const v1::TableRun& run : proto.table()) answer.table.push_back(FromProto(run));
  for (const v1::CopyOrder& copy : proto.copies()) {
    answer.copies.push_back(
        {copy.group(), FromWire(copy.source()), FromWire(copy.destination()), copy.tokens()});
  }
  for (const v1::BeginResult& begin : proto.begins()) {
    answer.begins.push_back(
        {begin.operation(), begin.reused_tokens(), begin.copied_tokens(), begin.length()});
  }
  for (const v1::ForkResult& fork : proto.forks()) {
    answer.forks.push_back({fork.operation(), fork.length()});
  }
  for (const v1::OperationFailure& failure : proto.failures()) {
    answer.failures.push_back(FromProto(failure));
  }
  for (const v1::SequenceNotice& notice : proto.notices()) {
    answer.notices.push_back({notice.sequence(), client::FromProto(notice.error())});
  }
  answer.pool = {proto.pool().free(), proto.pool().evictable(), proto.pool().fenced()};
  return answer;
}

Error FromProto(const v1::OperationError& proto) {
  const bool known = proto.reason() > 0 && v1::ErrorReason_IsValid(proto.reason());
  Error error = MakeError(known ? static_cast<Reason>(proto.reason()) : Reason::kInvariantBroken,
                          proto.message());
  for (const v1::ErrorNumber& number : proto.numbers()) {
    error.details.emplace_back(std::string_view(number.name()), std::string_view(number.value()));
  }
  return error;
}

}  // namespace quire::client
