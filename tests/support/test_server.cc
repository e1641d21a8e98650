#include "tests/support/test_server.h"

#include <utility>

#include "gtest/gtest.h"
#include "tests/support/grpc_errors.h"
#include "tests/support/status_matchers.h"

namespace quire::testing {
namespace {

constexpr uint64_t kEpoch = 0xE90C;
constexpr uint32_t kBlockTokens = 4;

PoolSetup IdsOnlyPool() {
  PoolSetup setup;
  setup.pool.engine.pool_name = "default";
  setup.pool.engine.epoch = kEpoch;
  setup.pool.engine.block_tokens = kBlockTokens;
  setup.pool.engine.max_sequence_tokens = 0;
  setup.pool.engine.memory = PoolMemoryKind::kWorker;
  setup.pool.engine.block_count = 10;
  setup.pool.shape = ModelShape();
  setup.pool.shape->block_tokens = kBlockTokens;
  return setup;
}

}  // namespace

v1::ModelLayout SharedPoolLayout() {
  v1::ModelLayout layout;
  layout.set_dtype(v1::DTYPE_FP32);
  layout.set_kv_heads(2);
  layout.set_head_dim(64);
  layout.add_layer_windows(0);
  return layout;
}

PoolSetup SharedPool(const TempFolder& folder, uint32_t blocks) {
  PoolSetup setup = IdsOnlyPool();
  setup.pool.engine.memory = PoolMemoryKind::kShared;
  setup.pool.engine.block_count = 0;
  setup.pool.device_memory_bytes = uint64_t{blocks} * 4096;
  setup.pool.shape->dtype = kernels::DType::kF32;
  setup.pool.shape->kv_heads = 2;
  setup.pool.shape->head_dim = 64;
  setup.pool.shape->layer_windows = {0};
  setup.memory.directory = folder.path();
  return setup;
}

TestServer::TestServer(const Change& change) {
  options_.unix_socket = folder_.File("s");
  options_.version = "test";
  options_.pools = {IdsOnlyPool()};
  if (change) change(options_);
  auto started = Server::Start(options_, clock_);
  EXPECT_THAT(started, IsOk());
  server_ = *std::move(started);
  const auto channel = NewChannel(address());
  cache_ = v1::CacheService::NewStub(channel);
  admin_ = v1::AdminService::NewStub(channel);
}

std::shared_ptr<grpc::Channel> TestServer::NewChannel(const std::string& address) const {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

TestWorker::TestWorker(TestServer& server, const std::string& name, const std::string& token,
                       Memory memory)
    : server_(server), token_(token) {
  v1::AttachWorkerRequest request;
  request.set_worker(name);
  request.set_incarnation(1);
  request.set_model_fingerprint("m");
  request.set_lock_step(true);
  request.set_map_memory(memory == Memory::kMapped);
  if (memory == Memory::kMapped) *request.mutable_layout() = SharedPoolLayout();
  EXPECT_THAT(server_.Call(server_.cache(), &v1::CacheService::Stub::AttachWorker, request,
                           &attached_, token_),
              CallIsOk());
}

v1::StepBatch& TestWorker::NewStep() {
  request_.Clear();
  v1::StepBatch& batch = *request_.mutable_step();
  batch.set_lease_id(attached_.lease_id());
  batch.set_epoch(attached_.epoch());
  batch.set_step(next_step_);
  return batch;
}

grpc::Status TestWorker::Send(v1::StepResponse* response) {
  const grpc::Status status =
      server_.Call(server_.cache(), &v1::CacheService::Stub::Step, request_, response, token_);
  if (status.ok()) ++next_step_;
  return status;
}

v1::StepAnswer TestWorker::MustSend() {
  v1::StepResponse response;
  EXPECT_THAT(Send(&response), CallIsOk());
  EXPECT_EQ(response.answer().failures_size(), 0) << response.DebugString();
  return response.answer();
}

void TestWorker::Begin(uint64_t handle, uint32_t length, uint32_t first) {
  v1::BeginOperation* begin = NewStep().add_operations()->mutable_begin();
  begin->set_sequence(handle);
  for (uint32_t i = 0; i < length; ++i) begin->add_tokens(first + i);
  MustSend();
}

void TestWorker::Commit(uint64_t handle, uint32_t length) {
  v1::CommitOperation* commit = NewStep().add_operations()->mutable_commit();
  commit->set_sequence(handle);
  commit->set_start_length(length);
  commit->set_committed_length(length);
  MustSend();
}

v1::TableRun TestWorker::Table(uint64_t handle) {
  v1::GetBlockTableRequest request;
  request.set_lease_id(attached_.lease_id());
  request.set_epoch(attached_.epoch());
  request.add_sequences(handle);
  v1::GetBlockTableResponse response;
  EXPECT_THAT(server_.Call(server_.cache(), &v1::CacheService::Stub::GetBlockTable, request,
                           &response, token_),
              CallIsOk());
  return response.tables(0).groups(0);
}

}  // namespace quire::testing
