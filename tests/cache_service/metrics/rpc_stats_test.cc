#include "cache_service/metrics/rpc_stats.h"

#include <chrono>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace quire {
namespace {

TEST(RpcStatsTest, CountsByMethodAndCode) {
  RpcStats stats({{"s", "A"}, {"s", "B"}});
  stats.Record(1, 0, std::chrono::microseconds(3));
  stats.Record(1, 5, std::chrono::microseconds(3));
  stats.Record(1, 99, std::chrono::microseconds(3));
  EXPECT_EQ(stats.Count(0, 0), 0u);
  EXPECT_EQ(stats.Count(1, 0), 1u);
  EXPECT_EQ(stats.Count(1, 5), 1u);
  EXPECT_EQ(stats.Count(1, 2), 1u);
  EXPECT_EQ(stats.Latency(1).count, 3u);
  EXPECT_EQ(stats.Latency(1).sum, 9000);
}

TEST(RpcStatsTest, LatencyGoesIntoTheBucketBelowItsPowerOfTwo) {
  LatencyHistogram histogram;
  for (const int64_t ns : {int64_t{0}, int64_t{1}, int64_t{1023}, int64_t{1024}}) {
    histogram.Record(Duration(ns));
  }
  histogram.Record(Duration(-5));
  histogram.Record(Duration::max());
  const PowerHistogram snapshot = histogram.Snapshot();
  EXPECT_EQ(snapshot.counts[0], 2u);
  EXPECT_EQ(snapshot.counts[1], 1u);
  EXPECT_EQ(snapshot.counts[10], 1u);
  EXPECT_EQ(snapshot.counts[11], 1u);
  EXPECT_EQ(snapshot.counts[PowerHistogram::kBuckets - 1], 1u);
}

TEST(RpcStatsTest, LosesNothingUnderThreads) {
  RpcStats stats(std::vector<RpcStats::Method>{{"s", "A"}});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&stats] {
      for (int n = 0; n < 10000; ++n) stats.Record(0, 0, Duration(n));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(stats.Count(0, 0), 40000u);
  EXPECT_EQ(stats.Latency(0).count, 40000u);
}

}  // namespace
}  // namespace quire
