#include "tests/chaos/fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace quire::chaos {
namespace {

using testing::HasSubstr;

// 256 blocks of 64 KiB: full enough that content is evicted. Leases are short, so that a stopped
// worker loses its own; a drain does not wait for one.
const std::vector<std::string> kServer = {
    "--device_memory_bytes=8MiB", "--max_sequence_tokens=512", "--stream_grace=500ms",
    "--drain_deadline=2s",        "--content_sample=4",        "--content_checks_per_run=16"};

}  // namespace

Fleet::Fleet(size_t workers, uint64_t seed) : seed_(seed), server_(kServer), workers_(workers) {
  for (size_t i = 0; i < workers; ++i) StartWorker(i);
}

void Fleet::StartWorker(size_t index) {
  WorkerState& worker = workers_[index];
  const uint64_t seed = seed_ + index * 1000 + static_cast<uint64_t>(++worker.lives);
  worker.stopped = false;
  worker.program.emplace(std::vector<std::string>{
      QUIRE_WORKER, "--server=" + server_.address(), "--name=w" + std::to_string(index),
      "--seed=" + std::to_string(seed), "--texts=" + texts(), "--layers=2", "--lease_seconds=2",
      "--workload=chat", "--users=4", "--think_ms=150", "--seconds=100000", "--progress=false",
      // The prompts of all workers and lives are the same, so that they share.
      "--prompts_seed=1"});
}

void Fleet::KillWorker(size_t index) { workers_[index].program.reset(); }

void Fleet::StopWorker(size_t index) {
  workers_[index].program->Signal(SIGSTOP);
  workers_[index].stopped = true;
}

void Fleet::ContinueWorker(size_t index) {
  workers_[index].program->Signal(SIGCONT);
  workers_[index].stopped = false;
}

void Fleet::EndWorker(size_t index) {
  Program& program = *workers_[index].program;
  program.Signal(SIGTERM);
  EXPECT_TRUE(program.EndsWithin(std::chrono::minutes(1))) << "worker " << index << " hangs";
  // One that was told to end before it could listen ends by the signal itself.
  if (program.output().empty()) return workers_[index].program.reset();
  const ProgramResult result = program.Wait();
  EXPECT_EQ(result.exit_code, 0) << "worker " << index << ": " << result.output;
  EXPECT_THAT(result.output, HasSubstr(", 0 failed"));
  workers_[index].program.reset();
}

void Fleet::ExpectAllAlive() {
  if (server_.pid() != 0) {
    EXPECT_TRUE(server_.IsAlive()) << "the server ended by itself";
  }
  for (size_t i = 0; i < workers_.size(); ++i) {
    std::optional<Program>& program = workers_[i].program;
    if (!program.has_value() || !program->EndsWithin(std::chrono::milliseconds(0))) continue;
    ADD_FAILURE() << "worker " << i << " ended by itself: " << program->output();
    program.reset();
  }
}

}  // namespace quire::chaos
