// Scenarios about processes with real ones: killed, stopped, forked, hung, restarted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <thread>

#include "tests/support/operator_calls.h"
#include "tests/support/puppet.h"
#include "tests/support/server_process.h"

namespace quire {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::StartsWith;

// Blocks of 4 KiB and 16 tokens.
std::vector<std::string> Flags(int blocks) {
  // One block's worth on top is taken by the control page of each region.
  return {"--device_memory_bytes=" + std::to_string(blocks * 4096), "--max_sequence_tokens=160",
          "--stream_grace=300ms",
          "--layout=dtype: DTYPE_BF16 kv_heads: 1 head_dim: 64 layer_windows: [0]"};
}

class ProcessTest : public testing::Test {
 protected:
  explicit ProcessTest(int blocks = 12) : server_(Flags(blocks)), calls_(server_.address()) {}

  v1::Pool Pool() {
    const auto pool = calls_.Pool();
    EXPECT_TRUE(pool.ok()) << pool.status();
    return pool.value_or(v1::Pool());
  }

  v1::BlockCounts Blocks() { return Pool().blocks(); }

  // Waits for what happens by itself.
  template <typename Condition>
  bool Eventually(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(milliseconds(10));
    }
    return true;
  }

  void ExpectCleanAudit() { EXPECT_EQ(calls_.Audit().value_or("no answer"), ""); }

  ServerProcess server_;
  OperatorCalls calls_;
};

class RoomyProcessTest : public ProcessTest {
 protected:
  RoomyProcessTest() : ProcessTest(1000) {}
};

TEST_F(RoomyProcessTest, S56_AKilledProcessGivesEverythingBack) {
  Puppet other(server_.address(), {.name = "other"});
  ASSERT_THAT(other.greeting(), StartsWith("ok"));
  EXPECT_EQ(other.Do("prompts 1 500000 55 1"), "ok");
  EXPECT_EQ(other.Do("complete"), "ok");
  const v1::BlockCounts before = Blocks();

  Puppet worker(server_.address());
  EXPECT_EQ(worker.Do("prompts 1 1000 20 200"), "ok");
  EXPECT_EQ(worker.Do("complete"), "ok");
  EXPECT_EQ(worker.Do("prompts 999 700000 40 1"), "ok");
  EXPECT_EQ(Pool().sequences(), 202u);
  worker.Kill();

  EXPECT_TRUE(Eventually([&] { return Pool().workers() == 1 && Blocks().quarantined() == 0; }));
  EXPECT_EQ(Pool().sequences(), 1u);
  EXPECT_EQ(other.Do("peek 1000 17"), "ok 16") << "complete";
  EXPECT_EQ(other.Do("peek 700000 41"), "ok 0") << "not complete";
  v1::BlockCounts after = Blocks();
  EXPECT_EQ(after.idle(), before.idle() + 200);
  EXPECT_EQ(after.free() + after.idle(), before.free() + before.idle());
  EXPECT_EQ(after.pending() + after.filling() + after.fenced() + after.bad(),
            before.pending() + before.filling() + before.fenced() + before.bad());
  ExpectCleanAudit();
}

TEST_F(ProcessTest, S57_AStoppedProcessWakesUpAndHurtsNobody) {
  Puppet old(server_.address());
  EXPECT_EQ(old.Do("prompts 1 1000 20 1"), "ok");
  EXPECT_EQ(old.Do("complete"), "ok");
  std::vector<int> writable = old.Blocks("extend 1 40");
  writable.erase(writable.begin());  // sealed and complete: public
  old.Signal(SIGSTOP);
  // The first thing that it will do when it wakes.
  old.Send("write 238 " + Words(writable));

  Puppet young(server_.address(), {.incarnation = 2});
  ASSERT_THAT(young.greeting(), StartsWith("ok"));
  EXPECT_EQ(Pool().sequences(), 0u);
  EXPECT_EQ(Blocks().quarantined(), writable.size());
  EXPECT_EQ(young.Do("peek 1000 17"), "ok 16") << "public content stays usable";
  const int left = static_cast<int>(Blocks().free() + Blocks().idle());
  const auto mine = young.Blocks("begin 1 5000 " + std::to_string(left * 16));
  for (const int block : writable) EXPECT_THAT(mine, testing::Not(testing::Contains(block)));
  EXPECT_EQ(young.Do("write 17 " + Words(mine)), "ok");
  std::this_thread::sleep_for(milliseconds(1200));
  EXPECT_EQ(Blocks().quarantined(), writable.size()) << "time alone releases nothing";

  old.Signal(SIGCONT);
  EXPECT_EQ(old.Receive(), "ok");
  EXPECT_EQ(young.Do("holds 17 " + Words(mine)), "ok");
  EXPECT_EQ(old.Do("lease"), "LEASE_EXPIRED");
  EXPECT_EQ(old.Do("finish 1"), "LEASE_EXPIRED");
  EXPECT_EQ(Blocks().quarantined(), writable.size()) << "it still maps the pool";
  old.Kill();
  EXPECT_TRUE(Eventually([&] { return Blocks().quarantined() == 0; }));
  ExpectCleanAudit();
}

TEST_F(ProcessTest, S57_EqualAndLowerIncarnationsOfOtherProcesses) {
  Puppet first(server_.address(), {.incarnation = 5});
  EXPECT_EQ(first.Do("prompts 1 1000 20 1"), "ok");
  Puppet equal(server_.address(), {.incarnation = 5});
  EXPECT_THAT(equal.greeting(), HasSubstr("resumed"));
  Puppet lower(server_.address(), {.incarnation = 4});
  EXPECT_EQ(lower.greeting(), "STALE_INCARNATION");
  EXPECT_EQ(Pool().sequences(), 1u);
}

// The kernel holds the lock as long as any process has the mapping. The child has the connection
// too, so no stream breaks: the lease has to run out.
TEST_F(ProcessTest, S57_AForkedChildKeepsTheQuarantineOfItsDeadParent) {
  Puppet parent(server_.address(), {.lease = milliseconds(1500)});
  const std::vector<int> blocks = parent.Blocks("begin 1 1000 40");
  const std::string forked = parent.Do("fork");
  ASSERT_THAT(forked, StartsWith("ok "));
  const int child = std::stoi(forked.substr(3));
  parent.Kill();
  EXPECT_TRUE(Eventually([&] { return Pool().workers() == 0; }));
  EXPECT_EQ(Blocks().quarantined(), blocks.size());
  std::this_thread::sleep_for(milliseconds(1200));
  EXPECT_EQ(Blocks().quarantined(), blocks.size()) << "the child could still write";
  SignalProcess(child, SIGKILL);
  EXPECT_TRUE(Eventually([&] { return Blocks().quarantined() == 0; }));
  EXPECT_EQ(Blocks().free(), Pool().block_count());
  ExpectCleanAudit();
}

TEST_F(ProcessTest, S57_AProcessThatHangsInACopyKeepsWhatItMayWrite) {
  Puppet hung(server_.address());
  EXPECT_EQ(hung.Do("prompts 1 1000 32 1"), "ok");
  EXPECT_EQ(hung.Do("complete"), "ok");
  EXPECT_EQ(hung.Do("finish 1"), "ok");
  EXPECT_EQ(hung.Do("complete"), "ok");
  EXPECT_EQ(Blocks().idle(), 2u);
  EXPECT_EQ(hung.Do("hangcopy"), "ok");
  // 31 of 32 tokens are reused: one whole block, and one copy that never ends.
  hung.Send("begin 2 1000 32");
  EXPECT_TRUE(Eventually([&] { return Pool().sequences() == 1; }));
  EXPECT_EQ(hung.Receive(milliseconds(300)), "silent");

  // Its lease is still renewed; an operator or a younger life ends it.
  Puppet young(server_.address(), {.incarnation = 2});
  ASSERT_THAT(young.greeting(), StartsWith("ok"));
  EXPECT_EQ(Blocks().quarantined(), 1u) << "the destination; nobody writes to the source";
  std::this_thread::sleep_for(milliseconds(1200));
  EXPECT_EQ(Blocks().quarantined(), 1u);
  EXPECT_THAT(young.Do("begin 1 1000 33"), HasSubstr("reused 32"));
  hung.Kill();
  EXPECT_TRUE(Eventually([&] { return Blocks().quarantined() == 0; }));
  ExpectCleanAudit();
}

TEST_F(ProcessTest, S66_AStoppedServerLosesNoLease) {
  // Far longer than the leases, as 40 s are than 30 s.
  constexpr auto kLease = milliseconds(3000);
  Puppet one(server_.address(), {.name = "one", .lease = kLease});
  Puppet two(server_.address(), {.name = "two", .lease = kLease});
  EXPECT_EQ(one.Do("prompts 1 1000 20 1"), "ok");
  EXPECT_EQ(two.Do("prompts 1 2000 20 1"), "ok");
  SignalProcess(server_.pid(), SIGSTOP);
  std::this_thread::sleep_for(milliseconds(5000));
  SignalProcess(server_.pid(), SIGCONT);
  std::this_thread::sleep_for(milliseconds(1000));
  for (Puppet* worker : {&one, &two}) {
    EXPECT_EQ(worker->Do("lease"), "ok");
    EXPECT_THAT(worker->Do("extend 1 40"), StartsWith("ok"));
  }
  EXPECT_EQ(Pool().sequences(), 2u);
  // Without renewals it would have ended long before.
  std::this_thread::sleep_for(kLease);
  EXPECT_EQ(Pool().workers(), 2u);
}

TEST_F(ProcessTest, S68_AWorkerOfAnOldLifeOfTheServerHurtsNobody) {
  Puppet old(server_.address());
  EXPECT_EQ(old.Do("prompts 1 1000 48 1"), "ok");
  EXPECT_EQ(old.Do("complete"), "ok");
  server_.Restart();
  Puppet young(server_.address(), {.name = "young"});
  EXPECT_THAT(young.Do("begin 1 1000 48"), HasSubstr("reused 0"));
  const auto mine = young.Blocks("begin 2 5000 100");
  EXPECT_EQ(young.Do("write 17 " + Words(mine)), "ok");
  EXPECT_EQ(old.Do("writeall 238"), "ok");
  EXPECT_EQ(young.Do("holds 17 " + Words(mine)), "ok");
  EXPECT_EQ(old.Do("finish 1"), "EPOCH_MISMATCH");
  Puppet again(server_.address(), {.incarnation = 2});
  EXPECT_THAT(again.greeting(), StartsWith("ok"));
  ExpectCleanAudit();
}

TEST(WorkerMemoryProcessTest, S74_MemoryOfTheWorkerIsLostWithIt) {
  ServerProcess server(
      {"--memory=worker", "--block_count=10", "--stream_grace=300ms", "--max_sequence_tokens=160"});
  OperatorCalls calls(server.address());
  {
    Puppet first(server.address());
    EXPECT_EQ(first.Do("prompts 1 1000 48 1"), "ok");
    EXPECT_EQ(first.Do("complete"), "ok");
    EXPECT_THAT(first.Do("begin 2 1000 48"), HasSubstr("reused 47"));
    first.Kill();
  }
  Puppet second(server.address(), {.incarnation = 2});
  EXPECT_EQ(calls.Pool()->blocks().quarantined(), 0u);
  EXPECT_EQ(calls.Pool()->blocks().free(), 10u);
  EXPECT_THAT(second.Do("begin 1 1000 48"), HasSubstr("reused 0"));
}

TEST_F(ProcessTest, S75_AProcessHandsItsPromptToAnother) {
  Puppet prefill(server_.address(), {.name = "prefill"});
  Puppet decode(server_.address(), {.name = "decode"});
  EXPECT_EQ(prefill.Do("prompts 1 1000 40 1"), "ok");
  EXPECT_EQ(prefill.Do("complete"), "ok");
  EXPECT_THAT(decode.Do("begin 1 1000 41"), HasSubstr("reused 32 copies 0"));
  prefill.Kill();
  EXPECT_TRUE(Eventually([&] { return Pool().workers() == 1 && Blocks().quarantined() == 0; }));
  EXPECT_EQ(decode.Do("commit 1"), "ok");
  EXPECT_EQ(decode.Do("complete"), "ok");
  ExpectCleanAudit();
}

}  // namespace
}  // namespace quire
