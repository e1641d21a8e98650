// The calls of one pool as scenarios make them, so that one scenario runs in process (FacadeDriver)
// and through a real server (RpcDriver). Errors keep reason and details in both.
#ifndef QUIRE_TESTS_SUPPORT_ENGINE_DRIVER_H_
#define QUIRE_TESTS_SUPPORT_ENGINE_DRIVER_H_

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cache_service/engine/admin_calls.h"
#include "cache_service/engine/engine_options.h"
#include "cache_service/engine/engine_stats.h"
#include "cache_service/engine/step.h"
#include "cache_service/engine/worker_calls.h"

namespace quire::testing {

class EngineDriver {
 public:
  virtual ~EngineDriver() = default;

  virtual const EngineOptions& options() const = 0;

  virtual absl::StatusOr<AttachResult> Attach(const AttachParams& params) = 0;
  virtual absl::StatusOr<RenewResult> Renew(const RenewParams& params) = 0;
  virtual absl::Status Detach(const LeaseId& lease, Epoch epoch, StepNumber completed_step) = 0;
  // The worker's stream breaks; the steps it sent are handled.
  virtual void BreakStream(const LeaseId& lease) = 0;
  virtual absl::StatusOr<StepResult> Step(const StepParams& params) = 0;
  virtual absl::StatusOr<std::vector<SequenceView>> GetTables(
      const LeaseId& lease, Epoch epoch, std::span<const SequenceHandle> sequences) = 0;
  virtual absl::StatusOr<uint32_t> PeekPrefix(const PrefixSelector& prefix) = 0;

  virtual std::vector<WorkerView> ListWorkers() = 0;
  virtual std::vector<SequenceView> ListSequences(std::string_view worker) = 0;
  virtual absl::StatusOr<SequenceView> GetSequence(std::string_view worker,
                                                   SequenceHandle handle) = 0;
  virtual std::vector<PinView> ListPins() = 0;
  // Through gRPC only what GetPool answers is filled.
  virtual EngineStats Stats() = 0;
  virtual absl::StatusOr<PinResult> PinPrefix(const PrefixSelector& prefix, std::string_view owner,
                                              Duration duration) = 0;
  virtual absl::Status UnpinPrefix(std::string_view pin_id) = 0;
  virtual absl::StatusOr<uint64_t> EvictPrefix(const PrefixSelector& prefix) = 0;
  virtual uint64_t Flush() = 0;
  virtual AuditReport Audit(bool content) = 0;
  virtual absl::StatusOr<uint32_t> EndWorker(std::string_view worker) = 0;
  virtual uint32_t StartDraining() = 0;
};

// Makes the driver that a scenario runs on.
using DriverFactory = std::unique_ptr<EngineDriver> (*)(const EngineOptions& options);

}  // namespace quire::testing

#endif  // QUIRE_TESTS_SUPPORT_ENGINE_DRIVER_H_
