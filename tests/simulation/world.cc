#include "tests/simulation/world.h"

#include <algorithm>

namespace quire::simulation {
namespace {

// Longer than any lease, stall or stop.
constexpr Tick kMostClosing = 20'000;
// A world that gets nothing done has stopped: some seeds lose much time, none all of it.
constexpr Tick kMostIdle = 20'000;

}  // namespace

World::World(uint64_t seed, Tick audit_every, bool trace)
    : plan_(DrawPlan(seed)),
      audit_every_(audit_every),
      judge_(trace),
      random_(seed),
      network_(plan_.network, random_),
      prompts_(plan_, random_),
      shared_{plan_, network_, prompts_, random_, judge_},
      server_(shared_),
      admin_(shared_, server_) {
  for (const WorkerPlan& worker : plan_.workers) workers_.push_back({&worker});
}

uint64_t World::digest() const {
  Random copy = random_;
  return Mix(copy.Next() + judge_.now());
}

void World::Run(uint64_t operations) {
  judge_.Trace("seed ", plan_.seed, ": ", Describe());
  Tick progress_at = 0;
  uint64_t before = 0;
  while (judge_.ok() && server_.operations() < operations) {
    Step();
    if (server_.operations() > before) progress_at = judge_.now();
    before = server_.operations();
    if (judge_.now() > progress_at + kMostIdle) judge_.Violate("nothing happens any more");
  }
  if (judge_.ok()) Close();
}

void World::Step() {
  judge_.SetNow(judge_.now() + 1);
  if (!closing_) Trouble();
  DeliverReplies();
  server_.Run(judge_.now());
  for (const auto& process : processes_) process->Run();
  std::erase_if(processes_, [](const auto& process) { return process->gone(); });
  if (!closing_) admin_.Run();
  const bool up = server_.engine() != nullptr && !server_.paused(judge_.now());
  if (up && judge_.now() % audit_every_ == 0) server_.Audit();
}

void World::DeliverReplies() {
  while (std::shared_ptr<const Reply> reply = network_.NextReply(judge_.now())) {
    for (const auto& process : processes_) {
      if (process->id() != reply->process) continue;
      process->Deliver(std::move(reply));
      break;
    }
  }
}

// --- What goes wrong ---

void World::Trouble() {
  TroubleServer();
  for (const auto& process : processes_) TroubleProcess(*process);
  Respawn();
}

void World::TroubleServer() {
  if (server_.engine() == nullptr || server_.paused(judge_.now())) return;
  const Tick lease = plan_.lease;
  if (random_.OneIn(plan_.chaos.server_pause)) {
    server_.Pause(judge_.now() + random_.Between(1, static_cast<uint32_t>(2 * lease)));
  } else if (random_.OneIn(plan_.chaos.server_restart)) {
    server_.Kill(judge_.now(), judge_.now() + random_.Below(40));
  }
}

void World::TroubleProcess(Process& process) {
  if (process.killed()) return;
  const auto lease = static_cast<uint32_t>(plan_.lease);
  if (random_.OneIn(plan_.chaos.kill)) {
    process.Kill();
  } else if (!process.stopped() && random_.OneIn(plan_.chaos.stop)) {
    process.Stop(judge_.now() + random_.Between(5, 3 * lease));
  } else if (random_.OneIn(plan_.chaos.leave)) {
    process.Leave(random_.OneIn(2));
  }
}

// A worker whose process is gone, or hangs, gets a new one with a higher incarnation.
void World::Respawn() {
  for (Worker& worker : workers_) {
    if (judge_.now() < worker.next_at) continue;
    const auto newest =
        std::find_if(processes_.begin(), processes_.end(),
                     [&](const auto& process) { return process->id() == worker.newest; });
    const bool replaced = newest != processes_.end() &&
                          ((*newest)->killed() || ((*newest)->stopped() && random_.OneIn(100)));
    if (newest != processes_.end() && !replaced) continue;
    worker.newest = next_process_++;
    ++worker.incarnation;
    worker.next_at = judge_.now() + random_.Between(1, 60);
    processes_.push_back(
        std::make_unique<Process>(shared_, *worker.plan, worker.newest, worker.incarnation));
  }
}

// --- The end ---

// All workers finish and leave; then no block may be lost.
void World::Close() {
  judge_.Trace("closing");
  closing_ = true;
  server_.Pause(0);
  server_.StayUp();
  const Tick start = judge_.now();
  while (judge_.ok() && !processes_.empty() && judge_.now() < start + kMostClosing) {
    for (const auto& process : processes_) {
      if (judge_.now() == start) process->Leave(random_.OneIn(2));
      if (process->stopped() && random_.OneIn(50)) process->Kill();
    }
    Step();
  }
  if (!processes_.empty()) judge_.Violate("a worker cannot leave");
  // Leases that only late messages made run out.
  for (Tick i = 0; judge_.ok() && i < 3 * plan_.lease; ++i) Step();
  if (judge_.ok()) CheckAccount();
}

void World::CheckAccount() {
  CacheEngine& engine = *server_.engine();
  admin_.EndPins();
  engine.RunMaintenance();
  server_.Audit();
  const EngineStats before = engine.Stats();
  if (before.blocks.free + before.blocks.idle != plan_.engine.block_count) {
    judge_.Violate("at the end ", before.blocks.free, " blocks are free and ", before.blocks.idle,
                   " idle, of ", plan_.engine.block_count, " (fenced ", before.blocks.fenced,
                   ", quarantined ", before.blocks.quarantined, ", filling ", before.blocks.filling,
                   ", pending ", before.blocks.pending, ", referenced ", before.blocks.referenced,
                   ", bad ", before.blocks.bad, ")");
  }
  if (before.sequences + before.leases + before.pins + before.claimed_blocks > 0) {
    judge_.Violate("at the end ", before.sequences, " sequences, ", before.leases, " leases, ",
                   before.pins, " pins and ", before.claimed_blocks, " claimed blocks are left");
  }
  if (before.counters.content_mismatches > 0 && plan_.misread == 0)
    judge_.Violate("a block lost its content");
  server_.Flush();
  server_.Audit();
  const uint64_t free = engine.Stats().blocks.free;
  if (free != plan_.engine.block_count) judge_.Violate("after the last flush ", free, " are free");
}

}  // namespace quire::simulation
