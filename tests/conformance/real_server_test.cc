// Scenarios that need a real server: streams that break, memory that stays mapped, layouts, health,
// another life of the server. Time is real here, so the leases are short and the tests poll.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "tests/support/rpc_call.h"
#include "tests/support/rpc_driver.h"
#include "tests/support/scenario.h"

namespace quire::testing {
namespace {

using std::chrono::milliseconds;

constexpr SequenceHandle kA = 1;
constexpr SequenceHandle kB = 2;

class RealServer : public ::testing::TestWithParam<StepCalls> {
 protected:
  void Start(EngineOptions options) {
    options.stream_grace = milliseconds(100);
    auto driver = std::make_unique<RpcDriver>(options, GetParam());
    driver_ = driver.get();
    story_ = std::make_unique<Story>(std::move(driver));
  }

  // Waits for what happens by itself, such as the end of a grace.
  template <typename Condition>
  bool Eventually(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(milliseconds(5));
    }
    return true;
  }

  std::unique_ptr<Story> story_;
  RpcDriver* driver_ = nullptr;
};

TEST_P(RealServer, S56_AWorkerThatDiesGivesEverythingBack) {
  Start(Pool(16, 1000));
  Worker& other = story_->Attach("other");
  other.Prompt(kA, Text(1, 55));
  const BlockStateCounts before = story_->Blocks();

  // Unary steps have no stream to break: there the lease has to run out.
  AttachParams params = AttachAs("w");
  params.lease_duration = std::chrono::seconds(3);
  Worker& w = story_->Attach(params);
  Batch begins;
  Batch commits;
  for (uint32_t s = 1; s <= 200; ++s) {
    begins.Begin(s, Text(1000 + s, 20));
    commits.Commit(s, 20, 20);
  }
  w.Must(begins);
  w.Must(commits);
  w.Settle();
  w.Must(Batch().Begin(999, Text(2, 40)));
  w.Must(Batch().Commit(999, 40, 40));
  EXPECT_EQ(driver_->Stats().sequences, 202u);

  driver_->EndProcess(w.lease());
  story_->Forget(w);
  ASSERT_TRUE(Eventually([&] { return driver_->ListWorkers().size() == 1; }));
  ASSERT_TRUE(Eventually([&] { return story_->Blocks().quarantined == 0; }));
  EXPECT_EQ(driver_->Stats().sequences, 1u);
  EXPECT_EQ(story_->Peek(Text(1001, 17)), 16u) << "complete";
  EXPECT_EQ(story_->Peek(Text(2, 41)), 0u) << "not complete";
  BlockStateCounts after = story_->Blocks();
  EXPECT_EQ(after.idle, before.idle + 200);
  EXPECT_EQ(after.free + after.idle, before.free + before.idle);
  after.free = before.free;
  after.idle = before.idle;
  EXPECT_EQ(after, before);
}

TEST_P(RealServer, S57_BlocksOfADisplacedProcessWaitUntilItUnmaps) {
  Start(Pool(16, 12));
  Worker& old = story_->Attach("w", 1);
  old.Prompt(kA, Text(1, 20));
  old.Extend(kA, 40);
  const std::set<BlockId> writable(old.Table(kA).begin() + 1, old.Table(kA).end());

  Worker& young = story_->Attach("w", 2);
  story_->Forget(old);
  EXPECT_EQ(old.Send(Batch()).reason, Reason::kLeaseExpired);
  EXPECT_EQ(old.Renew().reason, Reason::kLeaseExpired);
  EXPECT_FALSE(driver_->mapping(old.lease()).LeaseIsGood());
  EXPECT_TRUE(driver_->mapping(young.lease()).LeaseIsGood());
  EXPECT_EQ(story_->Blocks().quarantined, writable.size());
  EXPECT_EQ(story_->Peek(Text(1, 17)), 16u);
  young.Begin(kA, Text(5, 10 * 16));
  for (const BlockId block : young.Table(kA)) EXPECT_FALSE(writable.contains(block));
  EXPECT_EQ(story_->Blocks().quarantined, writable.size());

  driver_->Unmap(old.lease());
  EXPECT_TRUE(Eventually([&] { return story_->Blocks().quarantined == 0; }));
  young.Begin(kB, Text(6, 2 * 16));
}

TEST_P(RealServer, S58_AnotherLayoutIsRefusedAndBothAreNamed) {
  Start(Pool(16, 12));
  v1::AttachWorkerRequest request;
  request.set_worker("w");
  request.set_incarnation(1);
  request.set_model_fingerprint("model");
  v1::ModelLayout& layout = *request.mutable_layout();
  layout.set_dtype(v1::DTYPE_BF16);
  layout.set_kv_heads(1);
  layout.set_head_dim(64);
  layout.set_block_tokens(16);
  layout.add_layer_windows(0);
  const StateOf before = Snapshot(*driver_);
  for (const auto& [dtype, heads] :
       std::vector<std::pair<v1::Dtype, uint32_t>>{{v1::DTYPE_BF16, 1}, {v1::DTYPE_FP32, 2}}) {
    layout.set_dtype(dtype);
    layout.set_kv_heads(heads);
    v1::AttachWorkerResponse attached;
    const Error error = FromStatus(
        Call(driver_->cache(), &v1::CacheService::Stub::AttachWorker, request, &attached));
    EXPECT_EQ(error.reason, Reason::kLayoutMismatch) << error.message;
    EXPECT_FALSE(error.Detail("pool_layout").empty());
    EXPECT_FALSE(error.Detail("worker_layout").empty());
    EXPECT_NE(error.Detail("pool_layout"), error.Detail("worker_layout"));
  }
  EXPECT_EQ(Snapshot(*driver_), before);
}

TEST_P(RealServer, S59_AFlippedByteIsFoundNamedAndTold) {
  Start(Pool(16, 20));
  Worker& w = story_->Attach("w");
  w.Prompt(kA, Text(1, 64));
  w.Prompt(kB, Join(Text(1, 16), Text(2, 20)));
  // Checksums are computed when the server has time.
  ASSERT_TRUE(Eventually([&] { return driver_->Audit(true).content_checked >= 5; }));
  EXPECT_TRUE(driver_->Audit(true).findings.empty());

  const BlockId bad = w.Table(kA)[1];
  const client::PoolMapping& mapping = driver_->mapping(w.lease());
  std::byte& flipped = mapping.blocks()[Index(bad) * mapping.block_bytes() + 100];
  flipped ^= std::byte{1};
  const AuditReport report = driver_->Audit(true);
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].block, std::optional<BlockId>(bad));
  EXPECT_EQ(story_->Peek(Text(1, 65)), 16u) << "the block is gone with its subtree";

  const StepResult answer = w.Must(Batch());
  ASSERT_EQ(answer.notices.size(), 1u);
  EXPECT_EQ(answer.notices[0].sequence, kA);
  EXPECT_EQ(answer.notices[0].error.reason, Reason::kContentMismatch);
  w.Finish(kA);
  EXPECT_EQ(story_->Blocks().bad, 0u);
}

// grpc.health.v1.Health/Check of the whole server: 1 is SERVING, 2 is NOT_SERVING.
int HealthStatus(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kCallTimeout);
  const grpc::Slice nothing;
  const grpc::ByteBuffer request(&nothing, 1);
  grpc::ByteBuffer response;
  grpc::Status status;
  std::mutex mutex;
  std::condition_variable is_done;
  bool done = false;
  stub.UnaryCall(&context, "/grpc.health.v1.Health/Check", grpc::StubOptions(), &request, &response,
                 [&](const grpc::Status& result) {
                   const std::lock_guard lock(mutex);
                   status = result;
                   done = true;
                   is_done.notify_one();
                 });
  std::unique_lock lock(mutex);
  is_done.wait(lock, [&] { return done; });
  EXPECT_TRUE(status.ok()) << status.error_message();
  std::vector<grpc::Slice> slices;
  (void)response.Dump(&slices);
  // One field: number 1, a varint below 128.
  if (slices.size() != 1 || slices[0].size() != 2 || slices[0].begin()[0] != 0x08) return 0;
  return slices[0].begin()[1];
}

TEST_P(RealServer, S60_HealthTurnsNotServingWithTheDrain) {
  Start(Pool(16, 20));
  Worker& w = story_->Attach("w");
  w.Prompt(kA, Text(1, 48));
  EXPECT_EQ(HealthStatus(driver_->channel()), 1);
  EXPECT_EQ(driver_->StartDraining(), 1u);
  EXPECT_EQ(HealthStatus(driver_->channel()), 2);
  EXPECT_EQ(w.BeginError(kB, Text(2, 16)).reason, Reason::kDraining);
  w.Advance(kA, 101);
}

TEST_P(RealServer, S68_WritesOfAnOldLifeReachNoNewBlock) {
  Start(Pool(16, 10));
  Worker& w = story_->Attach("w");
  w.Prompt(kA, Text(1, 48));
  client::PoolMapping& old_mapping = driver_->mapping(w.lease());
  const Epoch old_epoch = driver_->options().epoch;
  driver_->Restart();
  story_->Forget(w);
  EXPECT_EQ(ReasonOf(driver_->Renew({w.lease(), old_epoch, 0, 0}).status()),
            Reason::kEpochMismatch);
  const Batch batch;
  StepParams params = w.ParamsFor(batch, w.last_sent() + 1);
  params.epoch = old_epoch;
  EXPECT_EQ(ReasonOf(driver_->Step(params).status()), Reason::kEpochMismatch);
  EXPECT_EQ(ReasonOf(driver_->GetTables(w.lease(), old_epoch, {}).status()),
            Reason::kEpochMismatch);

  Worker& again = story_->Attach("w", 2);
  EXPECT_EQ(again.Begin(kA, Text(1, 48)).reused_tokens, 0u);
  const client::PoolMapping& mapping = driver_->mapping(again.lease());
  const size_t bytes = mapping.block_bytes() * 10;
  const std::vector<std::byte> before(mapping.blocks(), mapping.blocks() + bytes);
  std::memset(old_mapping.blocks(), 0xAB, bytes);
  EXPECT_EQ(std::memcmp(mapping.blocks(), before.data(), bytes), 0);
}

INSTANTIATE_TEST_SUITE_P(Rpc, RealServer, ::testing::Values(StepCalls::kStream, StepCalls::kUnary),
                         [](const auto& test) {
                           return test.param == StepCalls::kStream ? "Stream" : "Unary";
                         });

}  // namespace
}  // namespace quire::testing
