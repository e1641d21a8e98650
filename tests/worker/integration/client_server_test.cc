// The client's copy of the tables equals the server's after any mix of operations.
#include <gtest/gtest.h>

#include <random>

#include "tests/support/server_process.h"
#include "worker/client/cache_client.h"

namespace quire::client {
namespace {

class RandomOperations {
 public:
  RandomOperations(CacheClient& client, uint32_t seed) : client_(client), random_(seed) {}

  // One to four operations, each on another sequence.
  Step NextStep() {
    Step step;
    std::vector<SequenceHandle> used;
    for (uint32_t i = 0, count = Number(1, 4); i < count; ++i) Add(step, used);
    return step;
  }

 private:
  uint32_t Number(uint32_t low, uint32_t high) {
    return std::uniform_int_distribution<uint32_t>(low, high)(random_);
  }

  void Begin(Step& step, std::vector<SequenceHandle>& used) {
    BeginParams begin{.sequence = ++last_};
    const uint32_t common = Number(0, 30);
    for (uint32_t i = 0, count = Number(1, 40); i < count; ++i) {
      begin.tokens.push_back(i < common ? 1 : Number(0, 3));
    }
    if (Number(0, 1) == 0) begin.allocate_tokens = Number(0, 10);
    used.push_back(begin.sequence);
    step.Begin(std::move(begin));
  }

  void Add(Step& step, std::vector<SequenceHandle>& used) {
    const auto& sequences = client_.tables().sequences();
    if (sequences.size() < 3 || Number(0, 4) == 0) return Begin(step, used);
    auto chosen = sequences.begin();
    std::advance(chosen, Number(0, static_cast<uint32_t>(sequences.size()) - 1));
    const auto& [handle, state] = *chosen;
    if (std::find(used.begin(), used.end(), handle) != used.end()) return;
    used.push_back(handle);
    const TokenId token = Number(0, 3);
    switch (Number(0, 7)) {
      case 0:
        return void(step.Finish(handle));
      case 1:
        return void(step.Truncate(handle, state.length, Number(1, std::max(1u, state.length))));
      case 2:
        return void(step.Fork(handle, state.length, {++last_, ++last_}));
      case 3:
      case 4:
        return void(step.Extend(handle, state.length, state.length + Number(0, 12)));
      case 5:
        return void(step.Commit(handle, state.length, state.length));
      default:
        return void(step.Advance(handle, state.length, {&token, 1}, Number(0, 9)));
    }
  }

  CacheClient& client_;
  std::mt19937 random_;
  SequenceHandle last_ = 0;
};

void ExpectEqual(CacheClient& client) {
  std::vector<SequenceHandle> handles;
  for (const auto& [handle, state] : client.tables().sequences()) handles.push_back(handle);
  const auto fetched = client.FetchTables(handles);
  ASSERT_TRUE(fetched.ok()) << fetched.status();
  for (size_t i = 0; i < handles.size(); ++i) {
    const SequenceState& mine = *client.tables().Find(handles[i]);
    const SequenceState& server = (*fetched)[i];
    ASSERT_EQ(mine.length, server.length) << handles[i];
    ASSERT_EQ(mine.committed, server.committed) << handles[i];
    ASSERT_EQ(mine.reserved, server.reserved) << handles[i];
    ASSERT_EQ(mine.tables, server.tables) << handles[i];
  }
}

class ClientServerTest : public testing::TestWithParam<uint32_t> {};

TEST_P(ClientServerTest, TablesStayEqual) {
  ServerProcess server(
      {"--memory=worker", "--block_count=40", "--block_tokens=4", "--max_sequence_tokens=80"});
  ClientOptions options{.server = server.address(), .model_fingerprint = "m"};
  // Two groups, one with a window.
  options.layout.emplace();
  options.layout->groups = {{0, {0}}, {6, {1}}};
  options.layout->kv_heads = 1;
  options.layout->head_dim = 64;
  auto client = CacheClient::Attach(options);
  ASSERT_TRUE(client.ok()) << client.status();
  uint64_t failures = 0, copies = 0, forks = 0;
  (*client)->set_copy_executor([&](std::span<const CopyOrder> orders) {
    copies += orders.size();
    return absl::OkStatus();
  });
  RandomOperations operations(**client, GetParam());
  for (int i = 0; i < 400; ++i) {
    ASSERT_TRUE((*client)->Submit(operations.NextStep()).ok());
    const auto applied = (*client)->Wait();
    ASSERT_TRUE(applied.ok()) << applied.status();
    failures += applied->answer.failures.size();
    forks += applied->answer.forks.size();
    ASSERT_TRUE((*client)->Complete(applied->answer.step).ok());
    ASSERT_NO_FATAL_FAILURE(ExpectEqual(**client)) << "step " << i << " seed " << GetParam();
  }
  EXPECT_GT(failures, 0u);
  EXPECT_GT(copies, 0u);
  EXPECT_GT(forks, 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ClientServerTest, testing::Values(1u, 2u, 3u, 4u));

TEST(ClientErrorsTest, ComeWithTheServersReason) {
  ServerProcess server({"--device_memory_bytes=4MiB", "--max_sequence_tokens=64"});
  ClientOptions options{.server = server.address(), .incarnation = 5, .model_fingerprint = "m"};
  options.layout = ModelLayout{.dtype = Dtype::kBf16, .kv_heads = 2, .head_dim = 64};
  options.layout->layer_windows = {0, 0};
  auto client = CacheClient::Attach(options);
  ASSERT_TRUE(client.ok()) << client.status();
  ClientOptions other = options;
  other.worker = "other";
  other.layout->head_dim = 128;
  EXPECT_EQ(ReasonOf(CacheClient::Attach(other).status()), Reason::kLayoutMismatch);
  ClientOptions older = options;
  older.incarnation = 4;
  EXPECT_EQ(ReasonOf(CacheClient::Attach(older).status()), Reason::kStaleIncarnation);
  ClientOptions elsewhere = options;
  elsewhere.pool = "elsewhere";
  EXPECT_EQ(ReasonOf(CacheClient::Attach(elsewhere).status()), Reason::kPoolNotFound);
  const SequenceHandle unknown[] = {99};
  EXPECT_EQ(ReasonOf((*client)->FetchTables(unknown).status()), Reason::kSequenceNotFound);
  Step step;
  step.Begin({.sequence = 1, .tokens = {}});
  const absl::Status submitted = (*client)->Submit(std::move(step)).status();
  ASSERT_TRUE(submitted.ok()) << submitted;
  const auto applied = (*client)->Wait();
  // Malformed as a whole or as an operation: either way the reason says so.
  const Reason reason =
      applied.ok() ? applied->answer.failures.at(0).error.reason : ReasonOf(applied.status());
  EXPECT_EQ(reason, Reason::kInvalidArgument);
}

TEST(ClientErrorsTest, AnUnreachableServerIsATransportError) {
  ClientOptions options{.server = "unix:/tmp/quire-nobody-listens-here", .model_fingerprint = "m"};
  options.retry_budget = std::chrono::milliseconds(200);
  options.call_timeout = std::chrono::milliseconds(200);
  const absl::Status status = CacheClient::Attach(options).status();
  EXPECT_FALSE(status.ok());
  EXPECT_FALSE(HasReason(status));
}

}  // namespace
}  // namespace quire::client
