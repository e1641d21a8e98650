// Ranks add up through shared memory, and none waits for ever.
#include "worker/runtime/shared_reduce.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

namespace quire::runtime {
namespace {

// Three ranks as threads, each with a mapping of its own as if in another process.
std::vector<std::unique_ptr<SharedReduce>> Ranks(uint32_t ranks) {
  std::vector<std::unique_ptr<SharedReduce>> all;
  all.push_back(*SharedReduce::Create(ranks));
  for (uint32_t rank = 1; rank < ranks; ++rank) {
    all.push_back(*SharedReduce::Open(dup(all[0]->fd()), rank, ranks));
  }
  return all;
}

TEST(SharedReduceTest, EveryRankGetsEverySum) {
  auto ranks = Ranks(3);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      for (uint32_t round = 0; round < 2000; ++round) {
        // Now and then longer than one piece.
        std::vector<float> values(round % 500 == 7 ? 150'000 : 5,
                                  static_cast<float>((rank + 1) * (round + 1)));
        ASSERT_TRUE(ranks[rank]->Sum(values).ok());
        for (const float value : values) ASSERT_EQ(value, static_cast<float>(6 * (round + 1)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(SharedReduceTest, ARankThatIsGoneEndsTheWait) {
  auto ranks = Ranks(2);
  ranks[0]->set_peers_alive([] { return false; });
  std::vector<float> values = {1};
  EXPECT_EQ(ranks[0]->Sum(values).code(), absl::StatusCode::kUnavailable);
}

TEST(SharedReduceTest, ARankThatFailedEndsTheWaitUntilTheReset) {
  auto ranks = Ranks(2);
  ranks[1]->Abort();
  std::vector<float> values = {1};
  EXPECT_EQ(ranks[0]->Sum(values).code(), absl::StatusCode::kUnavailable);
  ranks[0]->Reset();
  auto again = *SharedReduce::Open(dup(ranks[0]->fd()), 1, 2);
  std::thread other([&] {
    std::vector<float> its = {2};
    EXPECT_TRUE(again->Sum(its).ok());
  });
  values = {1};
  EXPECT_TRUE(ranks[0]->Sum(values).ok());
  other.join();
  EXPECT_EQ(values[0], 3.0f);
}

}  // namespace
}  // namespace quire::runtime
