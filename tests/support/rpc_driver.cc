#include "tests/support/rpc_driver.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <utility>

#include "gtest/gtest.h"
#include "tests/support/rpc_call.h"
#include "tests/support/rpc_messages.h"

namespace quire::testing {
namespace {

[[noreturn]] void ExitWith(const absl::Status& status) {
  std::cerr << "cannot start the server: " << status << std::endl;
  std::exit(EXIT_FAILURE);
}

// The smallest model that gives the groups of the options.
ModelShape ShapeOf(const EngineOptions& options) {
  ModelShape shape;
  shape.dtype = kernels::DType::kF32;
  shape.kv_heads = 1;
  shape.head_dim = 64;
  shape.block_tokens = options.block_tokens;
  uint32_t layer = 0;
  for (const GroupSpec& group : options.groups) {
    shape.groups.push_back({group.window_tokens, {layer++}});
  }
  return shape;
}

ServerOptions ServerFor(const EngineOptions& options, const std::string& folder,
                        const std::string& socket) {
  PoolSetup pool;
  pool.pool.engine = options;
  pool.pool.shape = ShapeOf(options);
  const auto layout = MakePoolLayout(*pool.pool.shape);
  if (!layout.ok()) ExitWith(layout.status());
  pool.pool.device_memory_bytes = layout->block_bytes * options.block_count;
  pool.memory.directory = folder;
  ServerOptions server;
  server.unix_socket = socket;
  server.pools = {pool};
  return server;
}

}  // namespace

struct RpcDriver::Stream {
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReaderWriter<v1::StreamStepsRequest, v1::StreamStepsResponse>> calls;
};

RpcDriver::RpcDriver(const EngineOptions& options, StepCalls calls)
    : options_(options), calls_(calls), socket_(folder_.File("quire.sock")) {
  StartServer();
}

void RpcDriver::StartServer() {
  auto server = Server::Start(ServerFor(options_, folder_.path(), socket_), clock_);
  if (!server.ok()) ExitWith(server.status());
  server_ = *std::move(server);
  channel_ = grpc::CreateChannel("unix:" + socket_, grpc::InsecureChannelCredentials());
  cache_ = v1::CacheService::NewStub(channel_);
  admin_ = v1::AdminService::NewStub(channel_);
}

void RpcDriver::Restart() {
  while (!streams_.empty()) BreakStream(streams_.begin()->first);
  server_.reset();
  ++options_.epoch;
  StartServer();
}

void RpcDriver::EndProcess(const LeaseId& lease) {
  BreakStream(lease);
  Unmap(lease);
}

RpcDriver::~RpcDriver() {
  while (!streams_.empty()) BreakStream(streams_.begin()->first);
  mappings_.clear();
  server_.reset();
}

v1::ModelLayout RpcDriver::LayoutMessage() const {
  const ModelShape shape = ShapeOf(options_);
  v1::ModelLayout layout;
  layout.set_dtype(v1::DTYPE_FP32);
  layout.set_kv_heads(shape.kv_heads);
  layout.set_head_dim(shape.head_dim);
  layout.set_block_tokens(shape.block_tokens);
  for (const GroupSpec& group : shape.groups) {
    v1::LayerGroup* added = layout.add_groups();
    added->set_kind(group.is_window() ? v1::GROUP_KIND_WINDOW : v1::GROUP_KIND_FULL);
    added->set_window_tokens(group.window_tokens);
    added->mutable_layers()->Assign(group.layers.begin(), group.layers.end());
  }
  return layout;
}

absl::StatusOr<AttachResult> RpcDriver::Attach(const AttachParams& params) {
  v1::AttachWorkerRequest request;
  request.set_worker(params.worker);
  request.set_incarnation(params.incarnation);
  request.set_model_fingerprint(params.model_fingerprint);
  *request.mutable_layout() = LayoutMessage();
  request.set_ranks(params.ranks);
  if (params.lease_duration) *request.mutable_lease_duration() = ToMessage(*params.lease_duration);
  request.set_map_memory(params.map_memory);
  request.set_lock_step(params.lock_step);
  v1::AttachWorkerResponse attached;
  absl::Status status = Call(*cache_, &v1::CacheService::Stub::AttachWorker, request, &attached);
  if (!status.ok()) return status;
  EXPECT_EQ(attached.epoch(), options_.epoch);
  EXPECT_EQ(attached.block_count(), options_.block_count);
  EXPECT_EQ(attached.block_tokens(), options_.block_tokens);
  status = MapRegions(attached);
  if (!status.ok()) return status;
  AttachResult result;
  result.lease = attached.lease_id();
  if (attached.regions_size() > 0) result.lease_number = attached.regions(0).lease_word();
  result.lease_duration = FromMessage(attached.lease_duration());
  result.expected_step = attached.expected_step();
  result.resumed = attached.resumed();
  return result;
}

absl::Status RpcDriver::MapRegions(const v1::AttachWorkerResponse& attached) {
  auto& mappings = mappings_[attached.lease_id()];
  if (!mappings.empty()) return absl::OkStatus();
  for (const v1::MemoryRegion& region : attached.regions()) {
    client::RegionGrant grant;
    grant.rank = region.rank();
    grant.path = region.path();
    grant.blocks_offset = region.blocks_offset();
    grant.bytes = region.bytes();
    grant.layout_id = region.layout_id();
    grant.layout_version = region.layout_version();
    grant.lease_word_offset = region.lease_word_offset();
    grant.lease_word = region.lease_word();
    grant.lock_offset = region.lock_offset();
    grant.epoch = attached.epoch();
    grant.block_bytes = attached.block_bytes();
    grant.block_count = attached.block_count();
    auto mapping = client::PoolMapping::Map(grant);
    if (!mapping.ok()) return mapping.status();
    mappings.push_back(*std::move(mapping));
  }
  return absl::OkStatus();
}

absl::StatusOr<RenewResult> RpcDriver::Renew(const RenewParams& params) {
  v1::RenewLeaseRequest request;
  request.set_lease_id(params.lease);
  request.set_epoch(params.epoch);
  request.set_applied_step(params.applied_step);
  request.set_completed_step(params.completed_step);
  v1::RenewLeaseResponse response;
  const absl::Status status =
      Call(*cache_, &v1::CacheService::Stub::RenewLease, request, &response);
  if (!status.ok()) return status;
  return RenewResult{FromMessage(response.lease_duration()), response.expected_step(),
                     response.draining()};
}

absl::Status RpcDriver::Detach(const LeaseId& lease, Epoch epoch, StepNumber completed_step) {
  v1::DetachWorkerRequest request;
  request.set_lease_id(lease);
  request.set_epoch(epoch);
  request.set_completed_step(completed_step);
  v1::DetachWorkerResponse response;
  return Call(*cache_, &v1::CacheService::Stub::DetachWorker, request, &response);
}

void RpcDriver::BreakStream(const LeaseId& lease) {
  const auto found = streams_.find(lease);
  if (found == streams_.end()) return;
  found->second->context.TryCancel();
  found->second->calls->Finish();
  streams_.erase(found);
}

absl::StatusOr<StepResult> RpcDriver::Step(const StepParams& params) {
  return calls_ == StepCalls::kStream ? StepOnStream(params) : StepByCall(params);
}

absl::StatusOr<StepResult> RpcDriver::StepOnStream(const StepParams& params) {
  std::unique_ptr<Stream>& stream = streams_[params.lease];
  if (stream == nullptr) {
    stream = std::make_unique<Stream>();
    stream->calls = cache_->StreamSteps(&stream->context);
  }
  v1::StreamStepsRequest request;
  *request.mutable_step() = ToMessage(params);
  v1::StreamStepsResponse response;
  if (!stream->calls->Write(request) || !stream->calls->Read(&response)) {
    const absl::Status status = FromCall(stream->calls->Finish());
    streams_.erase(params.lease);
    return status;
  }
  if (response.has_answer()) return FromMessage(response.answer());
  EXPECT_EQ(response.refusal().step(), params.step);
  return ToStatus(FromMessage(response.refusal().error()));
}

absl::StatusOr<StepResult> RpcDriver::StepByCall(const StepParams& params) {
  v1::StepRequest request;
  *request.mutable_step() = ToMessage(params);
  v1::StepResponse response;
  const absl::Status status = Call(*cache_, &v1::CacheService::Stub::Step, request, &response);
  if (!status.ok()) return status;
  return FromMessage(response.answer());
}

absl::StatusOr<std::vector<SequenceView>> RpcDriver::GetTables(
    const LeaseId& lease, Epoch epoch, std::span<const SequenceHandle> sequences) {
  v1::GetBlockTableRequest request;
  request.set_lease_id(lease);
  request.set_epoch(epoch);
  request.mutable_sequences()->Assign(sequences.begin(), sequences.end());
  v1::GetBlockTableResponse response;
  const absl::Status status =
      Call(*cache_, &v1::CacheService::Stub::GetBlockTable, request, &response);
  if (!status.ok()) return status;
  std::vector<SequenceView> views;
  for (const v1::SequenceTable& table : response.tables()) views.push_back(FromMessage(table));
  return views;
}

absl::StatusOr<uint32_t> RpcDriver::PeekPrefix(const PrefixSelector& prefix) {
  const v1::PrefixSelector selector = ToMessage(prefix);
  v1::PeekPrefixRequest request;
  request.set_model_fingerprint(selector.model_fingerprint());
  *request.mutable_namespace_() = selector.namespace_();
  *request.mutable_tokens() = selector.tokens();
  *request.mutable_digests() = selector.digests();
  v1::PeekPrefixResponse response;
  const absl::Status status =
      Call(*cache_, &v1::CacheService::Stub::PeekPrefix, request, &response);
  if (!status.ok()) return status;
  if (response.tiers_size() != 1 || response.tiers(0).tier() != "device") {
    return absl::InternalError("peek names other tiers than the device");
  }
  return response.tiers(0).reusable_tokens();
}

std::unique_ptr<EngineDriver> MakeStreamDriver(const EngineOptions& options) {
  return std::make_unique<RpcDriver>(options, StepCalls::kStream);
}

std::unique_ptr<EngineDriver> MakeUnaryDriver(const EngineOptions& options) {
  return std::make_unique<RpcDriver>(options, StepCalls::kUnary);
}

}  // namespace quire::testing
