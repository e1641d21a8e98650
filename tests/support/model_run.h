// The engine and its naive model side by side: each action is done to both and everything
// observable is compared. The property test draws the choices at random, the fuzz test reads them
// from bytes.
#ifndef QUIRE_TESTS_SUPPORT_MODEL_RUN_H_
#define QUIRE_TESTS_SUPPORT_MODEL_RUN_H_

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "cache_service/engine/cache_engine.h"
#include "tests/support/choices.h"
#include "tests/support/fake_clock.h"
#include "tests/support/naive_engine.h"
#include "tests/support/step_maker.h"

namespace quire::testing {

struct ModelRunOptions {
  uint32_t min_blocks = 8;
  uint32_t max_blocks = 40;
  // Actions between two self-checks of the engine.
  uint32_t audit_interval = 1;
  uint32_t groups = 1;
  // All groups but the first may have windows.
  bool windows = false;
  // Begins must leave a share of the pool.
  bool watermark = false;
  // One worker with memory of its own, which is lost with each of its lives.
  bool worker_memory = false;
};

class ModelRun {
 public:
  // Draws the size of the pool and the like.
  ModelRun(const ModelRunOptions& run_options, Choices& choices);

  // One call to engine and model. Returns what differs afterwards, or "".
  // A step leaves out the operations whose bits are set.
  std::string Act(Choices& choices, uint32_t left_out = 0);

  // The last actions, one text each.
  const std::deque<std::string>& log() const { return log_; }

  // Operations of steps (an advance is one) and other calls so far.
  uint64_t operations() const { return operations_; }

  std::string DescribeModel() const { return model_ ? model_->pool().Describe() : ""; }

 private:
  // A worker as the test plays it.
  struct Player {
    std::string name;
    uint64_t incarnation = 0;
    LeaseId lease;
    int number = 0;
    StepNumber last = 0;
    StepNumber applied = 0;
    StepNumber completed = 0;

    // Steps after `applied`, with the answers they got.
    struct Sent {
      StepParams params;
      MadeStep made;
      std::shared_ptr<const StepResult> answer;
    };

    std::deque<std::shared_ptr<Sent>> sent;
  };

  void Log(const std::string& text);
  void Attach(Player& player);
  void ReportProgress(Player& player, Choices& choices);
  std::string ActStep(Player& player, Choices& choices);
  std::string ActRepeat(Player& player, Choices& choices);
  std::string ActWrongStep(Player& player, Choices& choices);
  std::string ActRenew(Player& player, Choices& choices);
  std::string ActEndWorker(Player& player);
  std::string ActPin(Choices& choices);
  std::string ActUnpin(Choices& choices);
  std::string ActEvict(Choices& choices);
  std::string ActPeek(Choices& choices);
  std::string ActOn(Player& player, Choices& choices);
  PrefixSelector Select(const Prompt& prompt) const;
  std::string CompareState();
  std::string CompareTables(const Player& player);

  static constexpr char kFingerprint[] = "model";

  EngineOptions options_;
  const uint32_t audit_interval_;
  FakeClock clock_;
  std::unique_ptr<CacheEngine> engine_;
  std::unique_ptr<NaiveEngine> model_;
  std::unique_ptr<StepMaker> maker_;
  std::vector<Player> players_;
  std::vector<std::string> pins_;
  uint64_t actions_ = 0;
  uint64_t operations_ = 0;
  uint32_t left_out_ = 0;
  std::deque<std::string> log_;
};

}  // namespace quire::testing

#endif  // QUIRE_TESTS_SUPPORT_MODEL_RUN_H_
