// Whether engine and model are in the same state.
#include <sstream>
#include <string>

#include "tests/support/model_run.h"

namespace quire::testing {
namespace {

std::string Text(const BlockStateCounts& counts) {
  std::ostringstream text;
  text << "free " << counts.free << " fenced " << counts.fenced << " filling " << counts.filling
       << " pending " << counts.pending << " referenced " << counts.referenced << " idle "
       << counts.idle << " bad " << counts.bad << " quarantined " << counts.quarantined << " dead "
       << counts.dead;
  return text.str();
}

std::string Text(const SequenceView& view) {
  std::ostringstream text;
  text << "sequence " << view.handle << " committed " << view.committed << " length " << view.length
       << " reserved " << view.reserved;
  for (const GroupTable& table : view.groups) {
    text << " [";
    for (const BlockId block : table.blocks) {
      if (block == kNoBlock) {
        text << "- ";
      } else {
        text << Index(block) << " ";
      }
    }
    text << "]";
  }
  return text.str();
}

}  // namespace

std::string ModelRun::CompareState() {
  const EngineStats stats = engine_->Stats();
  const BlockStateCounts expected = model_->Counts();
  if (!(stats.blocks == expected)) {
    return "states: expected " + Text(expected) + "\n             got " + Text(stats.blocks);
  }
  for (const Player& player : players_) {
    if (std::string difference = CompareTables(player); !difference.empty()) return difference;
  }
  return "";
}

std::string ModelRun::CompareTables(const Player& player) {
  const std::vector<SequenceView> expected = model_->Sequences(player.number);
  std::vector<SequenceHandle> handles;
  for (const SequenceView& view : expected) handles.push_back(view.handle);
  const auto got = engine_->GetTables(player.lease, options_.epoch, handles);
  if (!got.ok()) return player.name + ": tables refused: " + std::string(got.status().message());
  if (engine_->ListSequences(player.name).size() != expected.size()) {
    return player.name + " has another number of sequences";
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    const std::string mine = Text(expected[i]);
    const std::string theirs = Text((*got)[i]);
    if (mine != theirs) return player.name + ": expected " + mine + "\n           got " + theirs;
  }
  return "";
}

}  // namespace quire::testing
