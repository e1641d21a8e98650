// The device of one process: an in-order queue of kernels and copies that every rank works off in
// its own time, on its own region. It goes on when the process is stopped, and a while when it is
// killed. Not thread-safe.
//
// A kernel writes the tokens it was launched for and reads all that they see, through the tables it
// was launched with. While the lease stands, every slot it reads must hold its own token.
#ifndef QUIRE_TESTS_SIMULATION_DEVICE_H_
#define QUIRE_TESTS_SIMULATION_DEVICE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulation/content.h"
#include "tests/simulation/judge.h"
#include "tests/simulation/memory.h"
#include "tests/simulation/plan.h"
#include "tests/simulation/random.h"

namespace quire::simulation {

// By group: block of each index.
using Tables = std::vector<std::vector<BlockId>>;

struct Kernel {
  SequenceHandle sequence = 0;
  // Null: of a worker without memory, so nothing is read or written.
  std::shared_ptr<const Tables> tables{};
  std::shared_ptr<const Text> text{};
  // Writes the text's tokens [first, end) and wrong drafts in [end, drafts_end).
  uint32_t first = 0;
  uint32_t end = 0;
  uint32_t drafts_end = 0;
  // Its end is told to the host.
  bool counts = true;
};

class Device {
 public:
  Device(const Plan& plan, uint32_t process, std::string name, Random& random, Judge& judge);

  // Works under a lease: the memory its blocks lie in and the word that may be revoked.
  // Without a mapping, copies do nothing.
  void Open(std::shared_ptr<PoolMemory> memory, uint64_t lease_number, bool maps);

  void Launch(Kernel kernel);
  // Copies of one answer, then the marker of its step.
  void Apply(std::shared_ptr<const StepResult> answer);

  // Lets every rank do some of its work.
  void Run(Tick now);

  // All that is queued is lost.
  void Cut() {
    queue_.clear();
    done_.assign(done_.size(), 0);
  }

  bool idle() const { return queue_.empty(); }

  size_t queued() const { return queue_.size(); }

  // Last step whose marker all ranks have passed.
  StepNumber marked() const { return marked_; }

  // Sequences of the kernels that all ranks have finished since the last call, in order.
  std::vector<SequenceHandle> TakeFinished() { return std::exchange(finished_, {}); }

 private:
  // A kernel, or the copies and the marker of an answer.
  struct Work {
    Kernel kernel;
    std::shared_ptr<const StepResult> answer;
  };

  void RunOne(uint32_t rank, const Work& work);
  void RunKernel(uint32_t rank, const Kernel& kernel);
  void WriteGroup(uint32_t rank, const Kernel& kernel, uint32_t group);
  void ReadGroup(uint32_t rank, const Kernel& kernel, uint32_t group);
  void Report(uint32_t rank, const Kernel& kernel, uint32_t group, uint32_t position,
              const Slot& found);

  const std::vector<GroupSpec> groups_;
  const uint32_t block_tokens_;
  const uint32_t stall_;
  const uint32_t process_;
  const std::string name_;
  Random& random_;
  Judge& judge_;
  std::shared_ptr<PoolMemory> memory_;
  uint64_t lease_number_ = 0;
  bool maps_ = true;
  std::deque<Work> queue_;
  // By rank: works of the queue that it has done, and until when it stands still.
  std::vector<size_t> done_;
  std::vector<Tick> stalled_until_;
  StepNumber marked_ = 0;
  std::vector<SequenceHandle> finished_;
};

}  // namespace quire::simulation

#endif  // QUIRE_TESTS_SIMULATION_DEVICE_H_
