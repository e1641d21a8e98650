#include "cache_service/metrics/family_sink.h"

#include <cmath>

#include "gtest/gtest.h"

namespace quire {
namespace {

TEST(FamilySinkTest, SamplesOfOneNameShareAFamily) {
  FamilySink sink;
  sink.Gauge({"blocks", "Blocks."}, {{"pool", "a"}}, 1);
  sink.Counter({"steps_total", "Steps."}, {}, 7);
  sink.Gauge({"blocks", "Blocks."}, {{"pool", "b"}}, 2);
  const auto families = sink.Take();
  ASSERT_EQ(families.size(), 2u);
  EXPECT_EQ(families[0].name, "quire_blocks");
  ASSERT_EQ(families[0].metric.size(), 2u);
  EXPECT_EQ(families[0].metric[1].label[0].value, "b");
  EXPECT_EQ(families[0].metric[1].gauge.value, 2);
  EXPECT_EQ(families[1].metric[0].counter.value, 7);
}

TEST(FamilySinkTest, BucketsAreCumulativeAndBoundedByPowersOfTwo) {
  PowerHistogram histogram;
  histogram.counts[0] = 1;
  histogram.counts[3] = 2;
  histogram.counts[9] = 4;
  histogram.count = 7;
  histogram.sum = 1000;
  FamilySink sink;
  sink.Histogram({"sizes", "Sizes."}, {}, histogram, {2, 4, 0.5});
  const auto out = sink.Take()[0].metric[0].histogram;
  ASSERT_EQ(out.bucket.size(), 4u);
  EXPECT_EQ(out.bucket[0].cumulative_count, 1u);
  EXPECT_EQ(out.bucket[0].upper_bound, 2.0);
  EXPECT_EQ(out.bucket[1].cumulative_count, 3u);
  EXPECT_EQ(out.bucket[2].cumulative_count, 3u);
  EXPECT_EQ(out.bucket[2].upper_bound, 8.0);
  EXPECT_EQ(out.bucket[3].cumulative_count, 7u);
  EXPECT_TRUE(std::isinf(out.bucket[3].upper_bound));
  EXPECT_EQ(out.sample_count, 7u);
  EXPECT_EQ(out.sample_sum, 500);
}

}  // namespace
}  // namespace quire
