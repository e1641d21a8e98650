#include "worker/client/attachment.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/kv_layout.h"
#include "worker/client/connection.h"
#include "worker/client/proto_convert.h"

namespace quire::client {
namespace {

Duration FromProto(const google::protobuf::Duration& proto) {
  return std::chrono::seconds(proto.seconds()) + std::chrono::nanoseconds(proto.nanos());
}

v1::AttachWorkerRequest MakeRequest(const ClientOptions& options, uint64_t incarnation) {
  v1::AttachWorkerRequest request;
  request.set_worker(options.worker);
  request.set_incarnation(incarnation);
  request.set_pool(options.pool);
  request.set_model_fingerprint(options.model_fingerprint);
  if (options.layout.has_value()) ToProto(*options.layout, *request.mutable_layout());
  request.set_ranks(options.ranks);
  if (options.lease.has_value()) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(*options.lease);
    request.mutable_lease_duration()->set_seconds(seconds.count());
    request.mutable_lease_duration()->set_nanos(
        static_cast<int32_t>((*options.lease - seconds).count()));
  }
  request.set_map_memory(options.map_memory);
  request.set_lock_step(options.mode == StepMode::kLockStep);
  return request;
}

RegionGrant MakeGrant(const v1::MemoryRegion& region, const PoolInfo& info) {
  return {.rank = region.rank(),
          .path = region.path(),
          .blocks_offset = region.blocks_offset(),
          .bytes = region.bytes(),
          .layout_id = region.layout_id(),
          .layout_version = region.layout_version(),
          .lease_word_offset = region.lease_word_offset(),
          .lease_word = region.lease_word(),
          .lock_offset = region.lock_offset(),
          .epoch = info.epoch,
          .block_bytes = info.block_bytes,
          .block_count = info.block_count};
}

PoolInfo MakeInfo(const v1::AttachWorkerResponse& response) {
  PoolInfo info;
  info.pool = response.pool();
  info.lease_id = response.lease_id();
  info.epoch = response.epoch();
  info.block_tokens = response.block_tokens();
  info.block_count = response.block_count();
  info.block_bytes = response.block_bytes();
  for (const v1::LayerGroup& group : response.groups()) {
    info.groups.push_back({group.window_tokens(), {group.layers().begin(), group.layers().end()}});
  }
  info.lease_duration = FromProto(response.lease_duration());
  info.max_steps_in_flight = std::max(1u, response.max_steps_in_flight());
  info.max_sequence_tokens = response.max_sequence_tokens();
  info.max_operations_per_step = response.max_operations_per_step();
  info.expected_step = std::max<uint64_t>(1, response.expected_step());
  info.resumed = response.resumed();
  for (const v1::MemoryRegion& region : response.regions()) {
    info.regions.push_back(MakeGrant(region, info));
  }
  return info;
}

static_assert(static_cast<int>(kernels::DType::kF32) == static_cast<int>(Dtype::kFp32) &&
              static_cast<int>(kernels::DType::kF16) == static_cast<int>(Dtype::kFp16) &&
              static_cast<int>(kernels::DType::kBF16) == static_cast<int>(Dtype::kBf16));

// The id of the worker's own layout: that of the group with the most layers.
absl::StatusOr<uint64_t> OwnLayoutId(const ModelLayout& model, const PoolInfo& info) {
  size_t layers = 0;
  for (const LayerGroup& group : info.groups) layers = std::max(layers, group.layers.size());
  const auto layout =
      kernels::MakeLayout({.dtype = static_cast<kernels::DType>(model.dtype),
                           .layers = static_cast<int32_t>(layers),
                           .kv_heads = static_cast<int32_t>(model.kv_heads),
                           .head_dim = static_cast<int32_t>(model.head_dim),
                           .block_tokens = static_cast<int32_t>(info.block_tokens)});
  if (!layout.ok()) return absl::InvalidArgumentError(layout.status().message());
  return layout->id;
}

absl::Status CheckLayout(const ModelLayout& model, const PoolInfo& info,
                         const v1::MemoryRegion& region) {
  const absl::StatusOr<uint64_t> own = OwnLayoutId(model, info);
  if (!own.ok()) return own.status();
  if (*own == region.layout_id() && region.layout_version() == kernels::kLayoutVersion) {
    return absl::OkStatus();
  }
  return ToStatus(MakeError(Reason::kLayoutMismatch, "the pool's layout is not the worker's",
                            {{"pool_layout_id", region.layout_id()},
                             {"worker_layout_id", *own},
                             {"pool_layout_version", region.layout_version()},
                             {"worker_layout_version", kernels::kLayoutVersion}}));
}

absl::StatusOr<std::unique_ptr<PoolMapping>> MapRegion(const ClientOptions& options,
                                                       const PoolInfo& info,
                                                       const v1::AttachWorkerResponse& response) {
  for (const v1::MemoryRegion& region : response.regions()) {
    if (region.rank() != options.rank) continue;
    if (options.layout.has_value()) {
      if (absl::Status status = CheckLayout(*options.layout, info, region); !status.ok()) {
        return status;
      }
    }
    return PoolMapping::Map(MakeGrant(region, info));
  }
  if (response.regions_size() == 0) return nullptr;
  return absl::InternalError(absl::StrCat("no region for rank ", options.rank));
}

// A lease that cannot be used would block the pool's layout until it runs out.
void GiveBack(Connection& connection, const ClientOptions& options, const PoolInfo& info) {
  v1::DetachWorkerRequest request;
  request.set_lease_id(info.lease_id);
  request.set_epoch(info.epoch);
  connection.Detach(request, options.call_timeout).IgnoreError();
}

bool MayRepeat(const absl::Status& status) {
  if (HasReason(status)) return ReasonOf(status) == Reason::kDraining;
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsCancelled(status);
}

// The server may have ended between the call and the mapping; its successor has another epoch.
bool MayBeGone(const absl::Status& status) {
  if (!HasReason(status)) return absl::IsNotFound(status);
  return ReasonOf(status) == Reason::kEpochMismatch || ReasonOf(status) == Reason::kLeaseExpired;
}

absl::StatusOr<Attachment> TryToAttach(Connection& connection, const ClientOptions& options,
                                       const v1::AttachWorkerRequest& request, TimePoint sent,
                                       uint64_t& unmapped_epoch) {
  const auto response = connection.Attach(request, options.call_timeout);
  if (!response.ok()) return response.status();
  Attachment attachment{.info = MakeInfo(*response), .mapping = nullptr, .attached_at = sent};
  auto mapping = MapRegion(options, attachment.info, *response);
  if (mapping.ok()) {
    attachment.mapping = *std::move(mapping);
    return attachment;
  }
  GiveBack(connection, options, attachment.info);
  const bool once = std::exchange(unmapped_epoch, attachment.info.epoch) != attachment.info.epoch;
  if (once && MayBeGone(mapping.status())) {
    return absl::UnavailableError(mapping.status().message());
  }
  return mapping.status();
}

}  // namespace

absl::StatusOr<Attachment> AttachWorker(Connection& connection, const ClientOptions& options,
                                        uint64_t incarnation, const Clock& clock,
                                        ServerWait& wait) {
  const v1::AttachWorkerRequest request = MakeRequest(options, incarnation);
  uint64_t unmapped_epoch = 0;
  for (;;) {
    absl::StatusOr<Attachment> attached =
        TryToAttach(connection, options, request, clock.Now(), unmapped_epoch);
    if (attached.ok() || !MayRepeat(attached.status())) return attached;
    if (absl::Status over = wait.Failed(attached.status()); !over.ok()) return over;
    connection.WaitForServer(wait.pause());
  }
}

}  // namespace quire::client
