#include "cache_service/rpc/attach_convert.h"

#include <string>
#include <utility>

#include "cache_service/base/error.h"
#include "cache_service/rpc/layout_convert.h"
#include "cache_service/rpc/proto_convert.h"

namespace quire {
namespace {

void FillRegions(const Pool& pool, const PoolAttachment& attachment,
                 v1::AttachWorkerResponse* response) {
  for (const MemoryGrant& grant : attachment.grants) {
    v1::MemoryRegion* region = response->add_regions();
    region->set_rank(grant.rank);
    region->set_path(grant.path);
    region->set_blocks_offset(grant.blocks_offset);
    region->set_bytes(grant.bytes);
    region->set_layout_id(pool.layout().layout_id);
    region->set_layout_version(kernels::kLayoutVersion);
    region->set_lease_word_offset(grant.lease_word_offset);
    region->set_lease_word(grant.lease_word);
    region->set_lock_offset(grant.lock_offset);
  }
}

}  // namespace

absl::StatusOr<AttachRequestParts> FromProto(const v1::AttachWorkerRequest& request,
                                             uint32_t default_block_tokens, const Caller& caller) {
  for (const auto& [field, name] : {std::pair("worker", &request.worker()),
                                    std::pair("model_fingerprint", &request.model_fingerprint())}) {
    if (absl::Status status = CheckName(field, *name); !status.ok()) return status;
  }
  AttachRequestParts parts;
  parts.params.worker = request.worker();
  parts.params.incarnation = request.incarnation();
  parts.params.model_fingerprint = request.model_fingerprint();
  parts.params.ranks = request.ranks() == 0 ? 1 : request.ranks();
  parts.params.map_memory = !request.has_map_memory() || request.map_memory();
  parts.params.lock_step = request.lock_step();
  parts.params.tenant = caller.tenant;
  if (request.has_lease_duration()) {
    const auto duration = PositiveDuration(request.lease_duration(), "lease_duration");
    if (!duration.ok()) return duration.status();
    parts.params.lease_duration = *duration;
  }
  if (request.has_layout()) {
    absl::StatusOr<ModelShape> shape = FromProto(request.layout(), default_block_tokens);
    if (!shape.ok()) return shape.status();
    parts.shape = *std::move(shape);
  }
  return parts;
}

void FillAttachment(const Pool& pool, const PoolAttachment& attachment,
                    v1::AttachWorkerResponse* response) {
  const EngineOptions& options = pool.engine()->options();
  response->set_epoch(options.epoch);
  response->set_pool(pool.name());
  response->set_block_tokens(options.block_tokens);
  response->set_block_count(options.block_count);
  response->set_block_bytes(options.block_bytes);
  for (size_t i = 0; i < options.groups.size(); ++i) {
    ToProto(options.groups[i], pool.layout().PaddingBytes(i), response->add_groups());
  }
  FillRegions(pool, attachment, response);
  ToProto(attachment.lease.lease_duration, response->mutable_lease_duration());
  ToProto(options.stream_grace, response->mutable_stream_grace());
  response->set_max_steps_in_flight(options.max_steps_in_flight);
  response->set_max_sequence_tokens(options.max_sequence_tokens);
  response->set_max_operations_per_step(options.max_operations_per_step);
  response->set_expected_step(attachment.lease.expected_step);
  response->set_resumed(attachment.lease.resumed);
}

}  // namespace quire
