#include "tests/support/scenario.h"

#include <algorithm>
#include <ostream>
#include <utility>

#include "gtest/gtest.h"

namespace quire::testing {

EngineOptions Pool(uint32_t block_tokens, uint32_t block_count) {
  return PoolOfWindows(block_tokens, block_count, {0}, block_tokens * block_count);
}

EngineOptions PoolOfWindows(uint32_t block_tokens, uint32_t block_count,
                            const std::vector<uint32_t>& windows, uint32_t max_sequence_tokens) {
  EngineOptions options;
  options.block_tokens = block_tokens;
  options.block_count = block_count;
  options.max_sequence_tokens = max_sequence_tokens;
  options.groups.clear();
  for (const uint32_t window : windows) options.groups.push_back({window, {}});
  return options;
}

AttachParams AttachAs(const std::string& name, uint64_t incarnation,
                      const std::string& model_fingerprint) {
  AttachParams params;
  params.worker = name;
  params.incarnation = incarnation;
  params.model_fingerprint = model_fingerprint;
  return params;
}

Story::Story(std::unique_ptr<EngineDriver> driver)
    : driver_(std::move(driver)),
      memory_(driver_->options().block_count, driver_->options().block_tokens) {}

Story::~Story() { ExpectSound(); }

Worker& Story::Attach(const std::string& name, uint64_t incarnation,
                      const std::string& model_fingerprint) {
  return Attach(AttachAs(name, incarnation, model_fingerprint));
}

Worker& Story::Attach(const AttachParams& params) {
  workers_.push_back(std::make_unique<Worker>(*driver_, memory_, params));
  return *workers_.back();
}

void Story::Forget(const Worker& worker) { forgotten_.push_back(&worker); }

uint64_t Story::Held() {
  const BlockStateCounts blocks = Blocks();
  return blocks.filling + blocks.pending + blocks.referenced;
}

uint32_t Story::Peek(const Tokens& tokens, const NamespaceParts& parts) {
  PrefixSelector prefix;
  prefix.model_fingerprint = "model";
  prefix.namespace_parts = parts;
  prefix.tokens = tokens;
  const auto found = driver_->PeekPrefix(prefix);
  EXPECT_TRUE(found.ok()) << found.status();
  return found.value_or(0);
}

void Story::ExpectSound() {
  for (const AuditFinding& finding : driver_->Audit(false).findings) {
    ADD_FAILURE() << "audit: rule " << finding.rule << ", " << finding.owner << ": "
                  << finding.message;
  }
  const EngineStats stats = driver_->Stats();
  EXPECT_EQ(stats.blocks.Sum(), stats.block_count);
  for (const auto& worker : workers_) {
    const bool forgotten =
        std::find(forgotten_.begin(), forgotten_.end(), worker.get()) != forgotten_.end();
    if (!forgotten) worker->ExpectConsistent();
  }
}

FacadeStory::FacadeStory(const EngineOptions& options, const EngineSeams& seams)
    : FacadeStory(std::make_unique<FacadeDriver>(options, seams)) {}

FacadeStory::FacadeStory(std::unique_ptr<FacadeDriver> driver)
    : Story(std::move(driver)), facade_(static_cast<FacadeDriver&>(Story::driver())) {}

StateOf Snapshot(EngineDriver& driver, const std::vector<Tokens>& probes) {
  const EngineStats stats = driver.Stats();
  StateOf state;
  state.blocks = stats.blocks;
  state.claimed_blocks = stats.claimed_blocks;
  state.tree_nodes = stats.tree_nodes;
  state.allocated_slots = stats.allocated_slots;
  state.used_slots = stats.used_slots;
  state.sequences_live = stats.sequences;
  state.workers = stats.workers;
  state.counters = stats.counters;
  // A refused call is counted; what it was asked for is not.
  state.counters.steps = state.counters.steps_refused = state.counters.steps_repeated = 0;
  state.counters.operations = state.counters.operations_failed = state.counters.shortages = 0;
  state.counters.audits = 0;
  for (const SequenceView& listed : driver.ListSequences("")) {
    const auto view = driver.GetSequence(listed.worker, listed.handle);
    EXPECT_TRUE(view.ok()) << view.status();
    if (!view.ok()) continue;
    state.sequences.push_back(*view);
    // A refused growth makes a waiter: the one trace it leaves.
    state.sequences.back().waiting = false;
  }
  for (const PinView& pin : driver.ListPins()) state.pins.push_back(pin.pin_id);
  for (const Tokens& probe : probes) {
    PrefixSelector prefix;
    prefix.model_fingerprint = "model";
    prefix.tokens = probe;
    state.found.push_back(driver.PeekPrefix(prefix).value_or(0));
  }
  return state;
}

std::ostream& operator<<(std::ostream& out, const StateOf& state) {
  const BlockStateCounts& blocks = state.blocks;
  out << "free " << blocks.free << ", fenced " << blocks.fenced << ", filling " << blocks.filling
      << ", pending " << blocks.pending << ", referenced " << blocks.referenced << ", idle "
      << blocks.idle << ", claimed " << state.claimed_blocks << ", nodes " << state.tree_nodes
      << ", slots " << state.used_slots << "/" << state.allocated_slots << ", pins "
      << state.pins.size();
  for (const SequenceView& sequence : state.sequences) {
    out << "; " << sequence.worker << "/" << sequence.handle << " " << sequence.committed << "/"
        << sequence.length << "/" << sequence.reserved << " [";
    for (const GroupTable& group : sequence.groups) {
      for (const BlockId block : group.blocks) out << Index(block) << " ";
    }
    out << "]";
  }
  for (const uint32_t tokens : state.found) out << "; found " << tokens;
  return out;
}

}  // namespace quire::testing
