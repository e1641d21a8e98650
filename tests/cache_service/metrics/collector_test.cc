#include "cache_service/metrics/collector.h"

#include <prometheus/metric_family.h>

#include <map>
#include <set>

#include "cache_service/metrics/metrics_endpoint.h"
#include "gtest/gtest.h"
#include "tests/support/status_matchers.h"

namespace quire {
namespace {

EngineStats SomeStats() {
  EngineStats stats;
  stats.pool_name = "p";
  stats.block_count = 10;
  stats.block_bytes = 4096;
  stats.blocks.free = 6;
  stats.blocks.idle = 4;
  stats.allocated_slots = 200;
  stats.used_slots = 150;
  stats.counters.prefix_tokens_queried = 100;
  stats.counters.prefix_tokens_hit_whole = 48;
  stats.counters.prefix_tokens_hit_partial = 7;
  stats.counters.blocks_evicted[0][3] = 5;
  stats.counters.blocks_evicted[3][10] = 2;
  stats.worker_stats.push_back({"w", std::chrono::milliseconds(1500)});
  return stats;
}

class CollectorTest : public ::testing::Test {
 protected:
  // The value of the series of `name` that carries all these labels.
  double Value(const std::string& name, const std::map<std::string, std::string>& labels) {
    for (const auto& family : families_) {
      if (family.name != "quire_" + name) continue;
      for (const auto& metric : family.metric) {
        std::map<std::string, std::string> has;
        for (const auto& label : metric.label) has[label.name] = label.value;
        bool all = true;
        for (const auto& [key, value] : labels) all = all && has[key] == value;
        if (all) return metric.gauge.value + metric.counter.value;
      }
    }
    ADD_FAILURE() << "no series " << name;
    return -1;
  }

  RpcStats rpcs_{std::vector<RpcStats::Method>{{"quire.v1.CacheService", "Step"}}};
  std::vector<prometheus::MetricFamily> families_ =
      Collector([] { return std::vector{SomeStats()}; }, rpcs_, "1.2.3").Collect();
};

TEST_F(CollectorTest, ShowsTheEnginesNumbers) {
  EXPECT_EQ(Value("blocks", {{"pool", "p"}, {"tier", "device"}, {"state", "free"}}), 6);
  EXPECT_EQ(Value("blocks_bytes", {{"state", "idle"}}), 4 * 4096);
  EXPECT_EQ(Value("pool_bytes", {}), 10 * 4096);
  EXPECT_EQ(Value("internal_waste_ratio", {}), 0.25);
  EXPECT_EQ(Value("prefix_tokens_queried_total", {}), 100);
  EXPECT_EQ(Value("prefix_tokens_hit_total", {{"source", "whole"}}), 48);
  EXPECT_EQ(Value("prefix_tokens_hit_total", {{"source", "partial"}}), 7);
  EXPECT_EQ(Value("blocks_evicted_total", {{"reason", "capacity"}, {"priority", "30-39"}}), 5);
  EXPECT_EQ(Value("blocks_evicted_total", {{"reason", "flushed"}, {"priority", "100"}}), 2);
  EXPECT_EQ(Value("worker_completed_age_seconds", {{"worker", "w"}}), 1.5);
  EXPECT_EQ(Value("build_info", {{"version", "1.2.3"}}), 1);
}

TEST_F(CollectorTest, EveryBlockIsInOneStateOfTheSum) {
  std::set<std::string> states;
  double sum = 0;
  for (const auto& family : families_) {
    if (family.name != "quire_blocks") continue;
    for (const auto& metric : family.metric) {
      states.insert(metric.label.back().value);
      sum += metric.gauge.value;
    }
  }
  EXPECT_EQ(states.size(), 8u);
  EXPECT_EQ(sum, 10);
}

TEST_F(CollectorTest, NamesAreUniqueAndHaveHelp) {
  std::set<std::string> names;
  for (const auto& family : families_) {
    EXPECT_TRUE(names.insert(family.name).second) << family.name;
    EXPECT_FALSE(family.help.empty()) << family.name;
    const bool counts = family.type == prometheus::MetricType::Counter;
    EXPECT_EQ(counts, family.name.ends_with("_total")) << family.name;
  }
}

TEST_F(CollectorTest, PoolWithoutBlocksHasNoWaste) {
  const auto empty = Collector([] { return std::vector{EngineStats{}}; }, rpcs_, "").Collect();
  for (const auto& family : empty) {
    if (family.name == "quire_internal_waste_ratio") {
      EXPECT_EQ(family.metric[0].gauge.value, 0);
    }
  }
}

TEST(MetricsEndpointTest, RefusesAnAddressInUse) {
  RpcStats rpcs(std::vector<RpcStats::Method>{});
  const auto collector =
      std::make_shared<Collector>([] { return std::vector<EngineStats>(); }, rpcs, "");
  const auto first = MetricsEndpoint::Start("127.0.0.1:0", collector);
  ASSERT_THAT(first, testing::IsOk());
  EXPECT_GT((*first)->port(), 0);
  const auto second =
      MetricsEndpoint::Start("127.0.0.1:" + std::to_string((*first)->port()), collector);
  EXPECT_THAT(second, testing::IsInvalid("metrics_address"));
  EXPECT_THAT(MetricsEndpoint::Start("not an address", collector),
              testing::IsInvalid("metrics_address"));
}

}  // namespace
}  // namespace quire
