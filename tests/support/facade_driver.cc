#include "tests/support/facade_driver.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <utility>

namespace quire::testing {
namespace {

std::unique_ptr<CacheEngine> CreateOrExit(const EngineOptions& options, const Clock& clock,
                                          const EngineSeams& seams) {
  auto engine = CacheEngine::Create(options, clock, seams);
  if (engine.ok()) return *std::move(engine);
  std::cerr << "cannot create the engine: " << engine.status() << std::endl;
  std::exit(EXIT_FAILURE);
}

}  // namespace

FacadeDriver::FacadeDriver(const EngineOptions& options, const EngineSeams& seams)
    : engine_(CreateOrExit(options, clock_, seams)) {}

void FacadeDriver::Pass(Duration duration) {
  const TimePoint end = clock_.Now() + duration;
  const Duration heartbeat = options().heartbeat;
  while (clock_.Now() < end) {
    // What is due already must not stop the clock.
    const TimePoint soonest = clock_.Now() + std::chrono::milliseconds(1);
    TimePoint next = std::min(std::max(engine_->RunMaintenance(), soonest), end);
    if (heartbeat > Duration::zero()) next = std::min(next, clock_.Now() + heartbeat);
    clock_.Set(next.time_since_epoch());
  }
  engine_->RunMaintenance();
}

absl::StatusOr<AttachResult> FacadeDriver::Attach(const AttachParams& params) {
  return engine_->Attach(params);
}

absl::StatusOr<RenewResult> FacadeDriver::Renew(const RenewParams& params) {
  return engine_->Renew(params);
}

absl::Status FacadeDriver::Detach(const LeaseId& lease, Epoch epoch, StepNumber completed_step) {
  return engine_->Detach(lease, epoch, completed_step);
}

void FacadeDriver::BreakStream(const LeaseId& lease) { engine_->StreamBroken(lease); }

absl::StatusOr<StepResult> FacadeDriver::Step(const StepParams& params) {
  auto answer = engine_->Step(params);
  if (!answer.ok()) return answer.status();
  return **answer;
}

absl::StatusOr<std::vector<SequenceView>> FacadeDriver::GetTables(
    const LeaseId& lease, Epoch epoch, std::span<const SequenceHandle> sequences) {
  return engine_->GetTables(lease, epoch, sequences);
}

absl::StatusOr<uint32_t> FacadeDriver::PeekPrefix(const PrefixSelector& prefix) {
  return engine_->PeekPrefix(prefix);
}

std::vector<WorkerView> FacadeDriver::ListWorkers() { return engine_->ListWorkers(); }

std::vector<SequenceView> FacadeDriver::ListSequences(std::string_view worker) {
  return engine_->ListSequences(worker);
}

absl::StatusOr<SequenceView> FacadeDriver::GetSequence(std::string_view worker,
                                                       SequenceHandle handle) {
  return engine_->GetSequence(worker, handle);
}

std::vector<PinView> FacadeDriver::ListPins() { return engine_->ListPins(); }

EngineStats FacadeDriver::Stats() { return engine_->Stats(); }

absl::StatusOr<PinResult> FacadeDriver::PinPrefix(const PrefixSelector& prefix,
                                                  std::string_view owner, Duration duration) {
  return engine_->PinPrefix(prefix, owner, duration);
}

absl::Status FacadeDriver::UnpinPrefix(std::string_view pin_id) {
  return engine_->UnpinPrefix(pin_id);
}

absl::StatusOr<uint64_t> FacadeDriver::EvictPrefix(const PrefixSelector& prefix) {
  return engine_->EvictPrefix(prefix);
}

uint64_t FacadeDriver::Flush() { return engine_->Flush(); }

AuditReport FacadeDriver::Audit(bool content) { return engine_->Audit(content); }

absl::StatusOr<uint32_t> FacadeDriver::EndWorker(std::string_view worker) {
  return engine_->EndWorker(worker);
}

uint32_t FacadeDriver::StartDraining() { return engine_->StartDraining(); }

std::unique_ptr<EngineDriver> MakeFacadeDriver(const EngineOptions& options) {
  return std::make_unique<FacadeDriver>(options);
}

}  // namespace quire::testing
