// One scenario: a pool, its tagged memory and its workers. At its end the audit must find nothing,
// every worker's bytes must be right, and its tables must be the server's.
#ifndef QUIRE_TESTS_SUPPORT_SCENARIO_H_
#define QUIRE_TESTS_SUPPORT_SCENARIO_H_

#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/engine_driver.h"
#include "tests/support/facade_driver.h"
#include "tests/support/scenario_worker.h"
#include "tests/support/tagged_memory.h"

namespace quire::testing {

// A pool of one full-attention group that admits sequences as long as the pool.
EngineOptions Pool(uint32_t block_tokens, uint32_t block_count);
// One group per window (0: full attention).
EngineOptions PoolOfWindows(uint32_t block_tokens, uint32_t block_count,
                            const std::vector<uint32_t>& windows, uint32_t max_sequence_tokens);

AttachParams AttachAs(const std::string& name, uint64_t incarnation = 1,
                      const std::string& model_fingerprint = "model");

class Story {
 public:
  explicit Story(std::unique_ptr<EngineDriver> driver);
  virtual ~Story();
  Story(const Story&) = delete;
  Story& operator=(const Story&) = delete;

  EngineDriver& driver() { return *driver_; }

  TaggedMemory& memory() { return memory_; }

  // A new worker; the story checks it at the end unless Forget is called.
  Worker& Attach(const std::string& name, uint64_t incarnation = 1,
                 const std::string& model_fingerprint = "model");
  Worker& Attach(const AttachParams& params);
  // The worker's lease is known to be over.
  void Forget(const Worker& worker);

  BlockStateCounts Blocks() { return driver_->Stats().blocks; }

  // Blocks held by tables.
  uint64_t Held();
  // Tokens that a begin of `tokens` would reuse.
  uint32_t Peek(const Tokens& tokens, const NamespaceParts& parts = {});
  void ExpectSound();

 private:
  std::unique_ptr<EngineDriver> driver_;
  TaggedMemory memory_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<const Worker*> forgotten_;
};

// A story in process, where time can be told to pass and the engine can be asked directly.
class FacadeStory : public Story {
 public:
  explicit FacadeStory(const EngineOptions& options, const EngineSeams& seams = {});

  CacheEngine& engine() { return facade_.engine(); }

  FacadeDriver& facade() { return facade_; }

  void Pass(Duration duration) { facade_.Pass(duration); }

 private:
  explicit FacadeStory(std::unique_ptr<FacadeDriver> driver);
  FacadeDriver& facade_;
};

// Everything that a refused operation must leave as it was: counts, tables, pins, what is found.
struct StateOf {
  BlockStateCounts blocks;
  uint64_t claimed_blocks = 0;
  uint64_t tree_nodes = 0;
  uint64_t allocated_slots = 0;
  uint64_t used_slots = 0;
  uint64_t sequences_live = 0;
  uint64_t workers = 0;
  EngineCounters counters;
  std::vector<SequenceView> sequences;
  std::vector<std::string> pins;
  std::vector<uint32_t> found;

  friend bool operator==(const StateOf&, const StateOf&) = default;
};

// `probes` are prompts whose reusable lengths belong to the state.
StateOf Snapshot(EngineDriver& driver, const std::vector<Tokens>& probes = {});
std::ostream& operator<<(std::ostream& out, const StateOf& state);

}  // namespace quire::testing

#endif  // QUIRE_TESTS_SUPPORT_SCENARIO_H_
