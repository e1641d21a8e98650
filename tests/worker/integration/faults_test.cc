// What a worker does when blocks are damaged, the server dies, or another worker comes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "proto/quire/v1/pool_file.h"
#include "tests/worker/integration/worker_fixture.h"

namespace quire::runtime {
namespace {

const std::vector<std::string> kRoomy = {"--device_memory_bytes=16MiB",
                                         "--max_sequence_tokens=512"};

// Overwrites one block of the pool behind everybody's back.
void DamageBlock(const ServerProcess& server, const client::CacheClient& client, int32_t block) {
  const int fd = open(server.PoolFile().c_str(), O_RDWR);
  ASSERT_GE(fd, 0);
  v1::PoolFileHeader header;
  ASSERT_EQ(pread(fd, &header, sizeof(header), 0), static_cast<ssize_t>(sizeof(header)));
  const std::vector<char> damage(client.pool().block_bytes, 0x3C);
  const auto offset =
      static_cast<off_t>(header.blocks_offset + static_cast<uint64_t>(block) * damage.size());
  ASSERT_EQ(pwrite(fd, damage.data(), damage.size(), offset), static_cast<ssize_t>(damage.size()));
  close(fd);
}

TEST(FaultsTest, VerificationSeesADamagedBlock) {
  ServerProcess server(kRoomy);
  TestWorker worker(SmallSetup(server));
  Request request;
  request.id = 1;
  request.prompt = std::vector<TokenId>(40, 7);
  request.new_tokens = 60;
  worker.scheduler().Add(request);
  bool damaged = false;
  while (!worker.scheduler().idle()) {
    ASSERT_TRUE(worker.scheduler().RunOnce().ok());
    const auto& sequences = worker.client().tables().sequences();
    if (damaged || sequences.empty() || sequences.begin()->second.length < 60) continue;
    DamageBlock(server, worker.client(), sequences.begin()->second.tables[0][1]);
    damaged = true;
  }
  ASSERT_TRUE(damaged);
  const auto results = worker.scheduler().TakeResults();
  ASSERT_EQ(results.size(), 1u);
  const VerifyReport report = worker.Verify(results);
  EXPECT_FALSE(report.identical()) << report.Summary();
  EXPECT_GT(report.different_logits, 0u);
}

TEST(FaultsTest, ARestartedServerOnlyCostsRecomputation) {
  ServerProcess server(kRoomy);
  TestWorker worker(SmallSetup(server));
  const auto chat = MakeChat(worker.load());
  int restarts = 0;
  const auto results = worker.Run(*chat, 40, [&](double) {
    if (restarts < 2 && worker.stats().requests >= 10u * static_cast<unsigned>(restarts + 1)) {
      ++restarts;
      server.Restart();
    }
  });
  EXPECT_EQ(results.size(), 40u);
  EXPECT_EQ(restarts, 2);
  EXPECT_GE(worker.stats().lost_leases, 1u);
  const VerifyReport report = worker.Verify(results);
  EXPECT_TRUE(report.identical()) << report.Summary();
}

// Its sequences are lost by each launch.
class LosingExecutor final : public Executor {
 public:
  explicit LosingExecutor(std::unique_ptr<Executor> inner) : inner_(std::move(inner)) {}

  const model::ModelConfig& config() const override { return inner_->config(); }

  absl::Status Map(const client::CacheClient& client) override { return inner_->Map(client); }

  void Unmap() override { inner_->Unmap(); }

  absl::Status Copy(std::span<const client::CopyOrder> orders) override {
    return inner_->Copy(orders);
  }

  absl::Status Launch(const model::LaunchBatch&, std::span<const model::SequenceTables>,
                      std::vector<float>&) override {
    return ToStatus(MakeError(Reason::kLeaseExpired, "lost by the test"));
  }

 private:
  const std::unique_ptr<Executor> inner_;
};

// Sooner if only what runs is to be finished.
TEST(FaultsTest, LeasesThatAlwaysEndEndTheRun) {
  for (const bool ending : {false, true}) {
    ServerProcess server(kRoomy);
    WorkerSetup setup = SmallSetup(server);
    setup.wrap = [](std::unique_ptr<Executor> inner) {
      return std::make_unique<LosingExecutor>(std::move(inner));
    };
    TestWorker worker(setup);
    worker.scheduler().Add({.id = 1, .prompt = std::vector<TokenId>(40, 7), .new_tokens = 6});
    worker.scheduler().set_ending(ending);
    absl::Status status;
    for (int rounds = 0; status.ok() && rounds < 10'000; ++rounds) {
      status = worker.scheduler().RunOnce();
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kAborted) << status;
    EXPECT_EQ(worker.stats().lost_leases, ending ? 3u : 10u);
    EXPECT_EQ(worker.scheduler().unfinished(), 1u);
  }
}

TEST(FaultsTest, APausedServerIsWaitedFor) {
  ServerProcess server(kRoomy);
  TestWorker worker(SmallSetup(server));
  const auto chat = MakeChat(worker.load());
  bool paused = false;
  const int pid = server.pid();
  const auto results = worker.Run(*chat, 20, [&](double) {
    if (paused || worker.stats().requests < 5) return;
    paused = true;
    kill(pid, SIGSTOP);
    usleep(300'000);
    kill(pid, SIGCONT);
  });
  EXPECT_TRUE(paused);
  EXPECT_EQ(worker.stats().lost_leases, 0u);
  EXPECT_TRUE(worker.Verify(results).identical());
}

TEST(FaultsTest, AYoungerLifeOfTheWorkerTakesOver) {
  ServerProcess server(kRoomy);
  TestWorker old_life(SmallSetup(server));
  const auto chat = MakeChat(old_life.load());
  EXPECT_EQ(old_life.Run(*chat, 5).size(), 5u);
  TestWorker new_life(SmallSetup(server));
  // The lease word tells the old life before any answer does.
  EXPECT_EQ(ReasonOf(old_life.client().CheckLease()), Reason::kLeaseExpired);
  EXPECT_FALSE(old_life.client().MayLaunch());
  const auto again = MakeChat(new_life.load());
  const auto results = new_life.Run(*again, 5);
  EXPECT_TRUE(new_life.Verify(results).identical());
  // What the old life computed and reported is found.
  EXPECT_GT(results[0].reused_tokens, 0u);
}

TEST(FaultsTest, WorkersShareWhatIsComplete) {
  ServerProcess server(kRoomy);
  WorkerSetup setup = SmallSetup(server);
  TestWorker first(setup);
  const auto chat = MakeChat(first.load());
  first.Run(*chat, 8);
  setup.name = "second";
  TestWorker second(setup);
  const auto same = MakeChat(second.load());
  const auto results = second.Run(*same, 4);
  EXPECT_GT(results[0].reused_tokens, 16u);
  EXPECT_TRUE(second.Verify(results).identical());
}

TEST(FaultsTest, TwoWorkersUnderPressureBothFinish) {
  ServerProcess server({"--device_memory_bytes=2MiB", "--max_sequence_tokens=320"});
  WorkerSetup setup = SmallSetup(server);
  setup.load.users = 2;
  TestWorker first(setup);
  setup.name = "second";
  setup.load.seed = 9;
  TestWorker second(setup);
  const auto one = MakeChat(first.load());
  const auto two = MakeChat(second.load());
  std::vector<RequestResult> results[2];
  std::thread other([&] { results[1] = second.Run(*two, 15); });
  results[0] = first.Run(*one, 15);
  other.join();
  EXPECT_EQ(results[0].size(), 15u);
  EXPECT_EQ(results[1].size(), 15u);
  EXPECT_TRUE(first.Verify(results[0]).identical());
  EXPECT_TRUE(second.Verify(results[1]).identical());
}

}  // namespace
}  // namespace quire::runtime
