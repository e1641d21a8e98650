#include "tests/simulation/plan.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"

namespace quire::simulation {
namespace {

using std::chrono::milliseconds;

std::vector<GroupSpec> DrawGroups(Random& random) {
  // In any order, of any windows.
  if (random.OneIn(5)) {
    std::vector<GroupSpec> groups(random.Between(2, 5));
    for (GroupSpec& group : groups)
      group.window_tokens = random.OneIn(3) ? 0 : random.Between(1, 90);
    return groups;
  }
  const auto window = [&] { return random.Between(2, 24); };
  switch (random.Below(10)) {
    case 0:
    case 1:
    case 2:
      return {{0, {}}, {window(), {}}};
    case 3:
      return {{window(), {}}, {0, {}}, {window(), {}}};
    case 4:
      return {{window(), {}}};
    case 5:
      return {{0, {}}, {0, {}}};
    default:
      return {{0, {}}};
  }
}

uint64_t BlocksOfLongest(const EngineOptions& options) {
  uint64_t blocks = 0;
  for (const GroupSpec& group : options.groups) {
    blocks += MostBlocksHeld(group, options.max_sequence_tokens, options.max_sequence_tokens,
                             options.block_tokens);
  }
  return blocks;
}

EngineOptions DrawEngine(Random& random, const Plan& plan) {
  EngineOptions options;
  // Now and then the largest, of which a sequence has few.
  const bool large = random.OneIn(50);
  options.block_tokens = large ? 16u << random.Below(5) : 2u << random.Below(3);
  options.groups = DrawGroups(random);
  options.max_sequence_tokens = large ? 3 * options.block_tokens : random.Between(24, 80);
  options.window_slack_tokens = random.OneIn(4) ? random.Between(1, 8) : 0;
  // From pressure all the time to hardly any.
  const uint64_t longest = BlocksOfLongest(options);
  options.block_count = static_cast<uint32_t>(longest + random.Below(8) * longest / 2 + 2);
  if (random.OneIn(8))
    options.block_count = static_cast<uint32_t>(BlocksOfLongestSequence(options));
  options.watermark = random.OneIn(5) ? 0.1 : 0.0;
  options.max_steps_in_flight = random.OneIn(3) ? random.Between(1, 4) : 8;
  options.default_lease = milliseconds(plan.lease);
  options.stream_grace = milliseconds(random.Between(20, 60));
  options.retry_interval = milliseconds(random.Between(5, 20));
  options.fence_timeout = milliseconds(50);
  options.quarantine_poll = milliseconds(10);
  options.heartbeat = milliseconds(10);
  options.pause_threshold = milliseconds(20);
  options.content_sample = plan.content_checks ? 7 : 0;
  return options;
}

WorkerPlan DrawWorker(Random& random, const Plan& plan, uint32_t index) {
  WorkerPlan worker;
  worker.name = absl::StrCat("worker-", index);
  const uint32_t wire = random.Below(8);
  worker.wire = wire < 5 ? Wire::kStream : wire < 7 ? Wire::kUnary : Wire::kLockStep;
  worker.steps_in_flight =
      worker.wire == Wire::kLockStep ? 1 : random.Between(1, plan.engine.max_steps_in_flight);
  worker.lag = worker.wire == Wire::kLockStep ? 1 : random.Between(1, 3);
  worker.drafts = random.OneIn(2) ? random.Between(1, 3) : 0;
  worker.ahead = random.OneIn(4) ? 0 : random.Between(1, 12);
  worker.most_sequences = random.Between(1, 6);
  worker.map_memory = !random.OneIn(16);
  return worker;
}

// It belongs to one worker, and the server reads none of it.
void GiveWorkerItsMemory(Plan& plan) {
  plan.engine.memory = PoolMemoryKind::kWorker;
  plan.workers.resize(1);
  plan.workers[0].map_memory = true;
  plan.content_checks = false;
  plan.misread = 0;
  plan.engine.content_sample = 0;
}

}  // namespace

Plan DrawPlan(uint64_t seed) {
  Random random(Mix(seed) ^ 0x9111A2);
  Plan plan;
  plan.seed = seed;
  plan.ranks = random.OneIn(4) ? 2 : 1;
  plan.content_checks = random.OneIn(3);
  plan.misread = plan.content_checks && random.OneIn(3) ? random.Between(5, 200) : 0;
  plan.lease = random.Between(150, 400);
  plan.lease_margin = plan.lease / 5;
  plan.families = random.Between(1, 5);
  plan.name_spaces = random.OneIn(3) ? random.Between(2, 4) : 1;
  plan.claims = random.OneIn(3) ? random.Between(1, 6) : 0;
  plan.engine = DrawEngine(random, plan);
  const uint32_t workers = random.OneIn(16) ? random.Between(5, 12) : random.Between(1, 4);
  for (uint32_t i = workers; i > 0; --i) plan.workers.push_back(DrawWorker(random, plan, i));
  if (random.OneIn(12)) GiveWorkerItsMemory(plan);
  const bool calm = random.OneIn(5);
  plan.network.longest_delay = random.Between(1, 8);
  plan.network.lost = calm ? 0 : random.Between(10, 100);
  plan.network.repeated = calm ? 0 : random.Between(10, 60);
  plan.network.stream_break = calm ? 0 : random.Between(50, 500);
  plan.chaos.kill = calm ? 0 : random.Between(200, 2'000);
  plan.chaos.stop = calm ? 0 : random.Between(100, 1'000);
  plan.chaos.leave = random.Between(500, 2'000);
  plan.chaos.server_pause = calm ? 0 : random.Between(200, 2'000);
  plan.chaos.server_restart = random.OneIn(3) ? random.Between(300, 2'000) : 0;
  plan.chaos.drain = random.OneIn(4) ? random.Between(300, 3'000) : 0;
  plan.chaos.admin = random.Between(5, 50);
  plan.chaos.end_worker = random.Between(300, 3'000);
  plan.chaos.flush = random.Between(200, 3'000);
  plan.chaos.device_stall = calm ? 0 : random.Between(50, 400);
  return plan;
}

std::string Describe(const Plan& plan) {
  const bool own = plan.engine.memory == PoolMemoryKind::kWorker;
  std::string text =
      absl::StrCat(own ? "worker memory, " : "", "pool of ", plan.engine.block_count, " blocks of ",
                   plan.engine.block_tokens, " tokens, sequences up to ",
                   plan.engine.max_sequence_tokens, " tokens, windows");
  for (const GroupSpec& group : plan.engine.groups)
    absl::StrAppend(&text, " ", group.window_tokens);
  absl::StrAppend(&text, " (slack ", plan.engine.window_slack_tokens, "), ", plan.ranks,
                  " ranks, lease ", plan.lease, " ms, claims 1 in ", plan.claims, ", workers");
  for (const WorkerPlan& worker : plan.workers) {
    const char* wire = worker.wire == Wire::kStream  ? " stream"
                       : worker.wire == Wire::kUnary ? " unary"
                                                     : " lock-step";
    absl::StrAppend(&text, wire, worker.map_memory ? "" : "/no-memory", "/", worker.steps_in_flight,
                    "/lag", worker.lag, "/drafts", worker.drafts, "/ahead", worker.ahead);
  }
  return text;
}

NamespaceParts NameSpaceParts(uint32_t index) {
  switch (index) {
    case 1:
      return {.adapter = "x"};
    case 2:
      return {.salt = "x"};
    case 3:
      return {.tenant = "t", .weights_version = "2"};
    default:
      return {};
  }
}

}  // namespace quire::simulation
