// An engine in this process on a clock that moves by hand.
#ifndef QUIRE_TESTS_SUPPORT_FACADE_DRIVER_H_
#define QUIRE_TESTS_SUPPORT_FACADE_DRIVER_H_

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "cache_service/engine/cache_engine.h"
#include "tests/support/engine_driver.h"
#include "tests/support/fake_clock.h"

namespace quire::testing {

class FacadeDriver final : public EngineDriver {
 public:
  // Ends the test program with a message if the engine refuses the options.
  explicit FacadeDriver(const EngineOptions& options, const EngineSeams& seams = {});

  CacheEngine& engine() { return *engine_; }

  Duration now() const { return clock_.Now().time_since_epoch(); }

  // Lets time pass as a server does whose maintenance thread wakes at every deadline.
  void Pass(Duration duration);

  // Lets time pass while nothing runs: the process was stopped.
  void Pause(Duration duration) { clock_.Advance(duration); }

  const EngineOptions& options() const override { return engine_->options(); }

  absl::StatusOr<AttachResult> Attach(const AttachParams& params) override;
  absl::StatusOr<RenewResult> Renew(const RenewParams& params) override;
  absl::Status Detach(const LeaseId& lease, Epoch epoch, StepNumber completed_step) override;
  void BreakStream(const LeaseId& lease) override;
  absl::StatusOr<StepResult> Step(const StepParams& params) override;
  absl::StatusOr<std::vector<SequenceView>> GetTables(
      const LeaseId& lease, Epoch epoch, std::span<const SequenceHandle> sequences) override;
  absl::StatusOr<uint32_t> PeekPrefix(const PrefixSelector& prefix) override;
  std::vector<WorkerView> ListWorkers() override;
  std::vector<SequenceView> ListSequences(std::string_view worker) override;
  absl::StatusOr<SequenceView> GetSequence(std::string_view worker, SequenceHandle handle) override;
  std::vector<PinView> ListPins() override;
  EngineStats Stats() override;
  absl::StatusOr<PinResult> PinPrefix(const PrefixSelector& prefix, std::string_view owner,
                                      Duration duration) override;
  absl::Status UnpinPrefix(std::string_view pin_id) override;
  absl::StatusOr<uint64_t> EvictPrefix(const PrefixSelector& prefix) override;
  uint64_t Flush() override;
  AuditReport Audit(bool content) override;
  absl::StatusOr<uint32_t> EndWorker(std::string_view worker) override;
  uint32_t StartDraining() override;

 private:
  FakeClock clock_;
  std::unique_ptr<CacheEngine> engine_;
};

std::unique_ptr<EngineDriver> MakeFacadeDriver(const EngineOptions& options);

}  // namespace quire::testing

#endif  // QUIRE_TESTS_SUPPORT_FACADE_DRIVER_H_
