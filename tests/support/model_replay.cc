#include "tests/support/model_replay.h"

#include <utility>

namespace quire::testing {
namespace {

// The difference without its numbers, so that a shorter run shows the same kind.
std::string KindOf(const std::string& difference) {
  std::string kind;
  for (const char letter : difference.substr(0, difference.find(':'))) {
    if (letter < '0' || letter > '9') kind.push_back(letter);
  }
  return kind;
}

class Minimizer {
 public:
  Minimizer(const ModelRunOptions& run_options, Recording recording, uint64_t most_calls)
      : run_options_(run_options), recording_(std::move(recording)), calls_left_(most_calls) {
    kind_ = KindOf(Replay(run_options_, recording_));
  }

  Recording Run() {
    // Large pieces first: a replay costs as much as what is left.
    for (size_t chunk = recording_.size() / 2; chunk > 1; chunk /= 2) LeaveOutActions(chunk);
    for (bool shorter = true; shorter;) {
      LeaveOutOperations();
      shorter = LeaveOutActions(1);
    }
    return std::move(recording_);
  }

 private:
  bool StillDiffers(const Recording& recording) {
    if (calls_left_ < recording.size()) return false;
    calls_left_ -= recording.size();
    return KindOf(Replay(run_options_, recording)) == kind_;
  }

  bool LeaveOutActions(size_t chunk) {
    bool shorter = false;
    for (size_t first = 1; first + chunk <= recording_.size();) {
      Recording fewer = recording_;
      const auto start = fewer.begin() + static_cast<std::ptrdiff_t>(first);
      fewer.erase(start, start + static_cast<std::ptrdiff_t>(chunk));
      if (StillDiffers(fewer)) {
        recording_ = std::move(fewer);
        shorter = true;
      } else {
        first += chunk;
      }
    }
    return shorter;
  }

  void LeaveOutOperations() {
    for (RecordedAction& action : recording_) {
      for (uint32_t bit = 1; bit < 1u << 5; bit <<= 1) {
        if ((action.left_out & bit) != 0) continue;
        action.left_out |= bit;
        if (!StillDiffers(recording_)) action.left_out &= ~bit;
      }
    }
  }

  const ModelRunOptions run_options_;
  Recording recording_;
  std::string kind_;
  uint64_t calls_left_;
};

}  // namespace

std::string Replay(const ModelRunOptions& run_options, const Recording& recording,
                   std::string* log) {
  ReplayChoices setup(recording.front().drawn);
  ModelRun run(run_options, setup);
  std::string difference;
  std::string before;
  for (size_t i = 1; i < recording.size() && difference.empty(); ++i) {
    ReplayChoices choices(recording[i].drawn);
    if (log != nullptr) before = run.DescribeModel();
    difference = run.Act(choices, recording[i].left_out);
  }
  if (log != nullptr) {
    for (const std::string& line : run.log()) *log += line + "\n";
    *log += "the model before the last call:\n" + before;
  }
  return difference;
}

Recording Minimize(const ModelRunOptions& run_options, Recording recording, uint64_t most_calls) {
  return Minimizer(run_options, std::move(recording), most_calls).Run();
}

}  // namespace quire::testing
