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
  stats.groups.resize(2);
  stats.groups[0].idle = 3;
  stats.groups[1].idle = 1;
  stats.allocated_slots = 200;
  stats.used_slots = 150;
  stats.tenants["acme"] = {.sequences = 2,
                           .begins = 3,
                           .prefix_tokens_queried = 100,
                           .prefix_tokens_hit_whole = 48,
                           .prefix_tokens_hit_partial = 7};
  stats.counters.blocks_evicted[0][3] = 5;
  stats.counters.blocks_evicted[3][10] = 2;
  stats.worker_stats.push_back({"w", std::chrono::milliseconds(1500)});
  // A live incarnation, and two dead ones that still map the pool.
  stats.unavailable = {{.worker = "w", .incarnation = 3, .fenced = 5, .claimed = 6, .held = 7},
                       {.worker = "w",
                        .incarnation = 1,
                        .quarantined = 2,
                        .quarantined_for = std::chrono::seconds(9)},
                       {.worker = "w",
                        .incarnation = 2,
                        .quarantined = 1,
                        .quarantined_for = std::chrono::seconds(4)}};
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
      Collector([] { return std::vector{PoolSnapshot{.engine = SomeStats()}}; }, rpcs_, "1.2.3")
          .Collect();
};

TEST_F(CollectorTest, ShowsTheEnginesNumbers) {
  EXPECT_EQ(Value("blocks", {{"pool", "p"}, {"tier", "device"}, {"state", "free"}}), 6);
  EXPECT_EQ(Value("blocks", {{"group", "0"}, {"state", "idle"}}), 3);
  EXPECT_EQ(Value("blocks_bytes", {{"group", "1"}, {"state", "idle"}}), 4096);
  EXPECT_EQ(Value("pool_bytes", {}), 10 * 4096);
  EXPECT_EQ(Value("internal_waste_ratio", {}), 0.25);
  EXPECT_EQ(Value("prefix_tokens_queried_total", {{"tenant", "acme"}}), 100);
  EXPECT_EQ(Value("prefix_tokens_hit_total", {{"tenant", "acme"}, {"source", "whole"}}), 48);
  EXPECT_EQ(Value("prefix_tokens_hit_total", {{"tenant", "acme"}, {"source", "partial"}}), 7);
  EXPECT_EQ(Value("sequences", {{"tenant", "acme"}}), 2);
  EXPECT_EQ(Value("prefix_tokens_queried_total", {{"tenant", ""}}), 0);
  EXPECT_EQ(Value("blocks_evicted_total", {{"reason", "capacity"}, {"priority", "30-39"}}), 5);
  EXPECT_EQ(Value("blocks_evicted_total", {{"reason", "flushed"}, {"priority", "100"}}), 2);
  EXPECT_EQ(Value("worker_completed_age_seconds", {{"worker", "w"}}), 1.5);
  EXPECT_EQ(Value("build_info", {{"version", "1.2.3"}}), 1);
}

TEST_F(CollectorTest, SaysWhichWorkerKeepsBlocksAndWhy) {
  const std::pair<const char*, double> reasons[] = {
      {"fenced", 5}, {"claimed", 6}, {"held", 7}, {"quarantined", 3}};
  for (const auto& [reason, blocks] : reasons) {
    EXPECT_EQ(Value("worker_blocks", {{"worker", "w"}, {"reason", reason}}), blocks) << reason;
  }
  EXPECT_EQ(Value("worker_quarantine_age_seconds", {{"worker", "w"}}), 9);
}

// The names and labels that the design lists, one by one.
TEST_F(CollectorTest, ShowsEveryMetricOfTheDesign) {
  std::set<std::string> names;
  for (const auto& family : families_) {
    names.insert(family.name);
    if (family.name == "quire_build_info" || family.name.starts_with("quire_rpc")) continue;
    for (const auto& metric : family.metric) {
      EXPECT_EQ(metric.label.at(0).name, "pool") << family.name;
      EXPECT_EQ(metric.label.at(1).name, "tier") << family.name;
    }
  }
  for (const char* name : {"blocks",
                           "dead_blocks",
                           "pool_bytes",
                           "sequences",
                           "waiters",
                           "workers",
                           "leases",
                           "pins",
                           "claimed_blocks",
                           "worker_completed_age_seconds",
                           "tree_nodes",
                           "internal_waste_ratio",
                           "oldest_idle_age_seconds",
                           "prefix_tokens_queried_total",
                           "prefix_tokens_hit_total",
                           "blocks_sealed_total",
                           "blocks_deduplicated_total",
                           "blocks_allocated_total",
                           "blocks_evicted_total",
                           "copy_on_write_copies_total",
                           "preemptions_total",
                           "shortages_total",
                           "leases_expired_total",
                           "blocks_reclaimed_total",
                           "audit_failures_total",
                           "content_checks_total",
                           "content_mismatches_total",
                           "events_dropped_total",
                           "step_duration_seconds",
                           "rpc_duration_seconds",
                           "operations_per_step",
                           "block_lifetime_seconds",
                           "idle_before_eviction_seconds",
                           "reuse_gap_seconds"}) {
    EXPECT_TRUE(names.contains(std::string("quire_") + name)) << name;
  }
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
  const auto empty = Collector([] { return std::vector{PoolSnapshot{}}; }, rpcs_, "").Collect();
  for (const auto& family : empty) {
    if (family.name == "quire_internal_waste_ratio") {
      EXPECT_EQ(family.metric[0].gauge.value, 0);
    }
  }
}

TEST(MetricsEndpointTest, RefusesAnAddressInUse) {
  RpcStats rpcs(std::vector<RpcStats::Method>{});
  const auto collector =
      std::make_shared<Collector>([] { return std::vector<PoolSnapshot>(); }, rpcs, "");
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
