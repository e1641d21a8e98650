#include "cache_service/engine/cache_engine.h"

#include <utility>

#include "cache_service/base/mutex.h"
#include "cache_service/engine/engine_core.h"

namespace quire {

class CacheEngine::Impl {
 public:
  Impl(const EngineOptions& options, const Clock& clock, const EngineSeams& seams)
      : options_(options),
        observer_(seams.observer),
        contents_(seams.contents),
        core_(options, clock, seams) {}

  const EngineOptions& options() const { return options_; }

  // Runs `call` on the core under the lock and tells the observer afterwards what happened. Memory
  // that runs out in a change ends the process: half a change must not be served.
  template <typename Call>
  auto Change(Call call) noexcept {
    return Look(call);
  }

  // Of calls that only read, once what is due has been applied.
  template <typename Call>
  auto Look(Call call) {
    Deliver deliver{observer_, {}};
    MutexLock lock(mutex_);
    auto result = call(core_);
    deliver.ended = core_.TakeEndedLeases();
    return result;
  }

  // Computes checksums with the lock released; a block that changes meanwhile is not judged.
  std::vector<AuditFinding> CheckContents(bool all, uint64_t& checked) {
    if (contents_ == nullptr) return {};
    std::vector<ContentCheck> checks =
        Look([&](EngineCore& core) { return core.TakeContentChecks(all); });
    if (checks.empty()) return {};
    for (ContentCheck& check : checks)
      check.computed = contents_->ChecksumOf(check.block, check.group);
    checked = checks.size();
    return Change([&](EngineCore& core) { return core.FinishContentChecks(checks); });
  }

 private:
  // Destroyed after the lock is released.
  struct Deliver {
    EngineObserver* observer;
    std::vector<uint64_t> ended;

    ~Deliver() {
      if (observer == nullptr) return;
      for (const uint64_t lease : ended) observer->OnLeaseEnded(lease);
    }
  };

  const EngineOptions options_;
  EngineObserver* const observer_;
  BlockContents* const contents_;
  Mutex mutex_;
  EngineCore core_ ABSL_GUARDED_BY(mutex_);
};

CacheEngine::CacheEngine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

CacheEngine::~CacheEngine() = default;

absl::StatusOr<std::unique_ptr<CacheEngine>> CacheEngine::Create(const EngineOptions& options,
                                                                 const Clock& clock,
                                                                 const EngineSeams& seams) {
  if (Error error = CheckOptions(options); !error.ok()) return ToStatus(error);
  return std::unique_ptr<CacheEngine>(
      new CacheEngine(std::make_unique<Impl>(options, clock, seams)));
}

const EngineOptions& CacheEngine::options() const { return impl_->options(); }

absl::StatusOr<AttachResult> CacheEngine::Attach(const AttachParams& params) {
  return impl_->Change([&](EngineCore& core) { return core.Attach(params); });
}

absl::StatusOr<RenewResult> CacheEngine::Renew(const RenewParams& params) {
  return impl_->Change([&](EngineCore& core) { return core.Renew(params); });
}

absl::Status CacheEngine::Detach(const LeaseId& lease, Epoch epoch, StepNumber completed_step,
                                 CallerTenant caller) {
  return impl_->Change(
      [&](EngineCore& core) { return core.Detach(lease, epoch, completed_step, caller); });
}

void CacheEngine::StreamBroken(const LeaseId& lease) {
  impl_->Change([&](EngineCore& core) {
    core.StreamBroken(lease);
    return true;
  });
}

absl::StatusOr<std::shared_ptr<const StepResult>> CacheEngine::Step(const StepParams& params) {
  return impl_->Change([&](EngineCore& core) { return core.Step(params); });
}

absl::StatusOr<std::vector<SequenceView>> CacheEngine::GetTables(
    const LeaseId& lease, Epoch epoch, std::span<const SequenceHandle> sequences,
    CallerTenant caller) {
  return impl_->Look(
      [&](EngineCore& core) { return core.GetTables(lease, epoch, sequences, caller); });
}

absl::StatusOr<uint32_t> CacheEngine::PeekPrefix(const PrefixSelector& prefix) {
  return impl_->Look([&](EngineCore& core) { return core.PeekPrefix(prefix); });
}

std::vector<WorkerView> CacheEngine::ListWorkers() {
  return impl_->Look([&](EngineCore& core) { return core.ListWorkers(); });
}

std::vector<SequenceView> CacheEngine::ListSequences(std::string_view worker) {
  return impl_->Look([&](EngineCore& core) { return core.ListSequences(worker); });
}

absl::StatusOr<SequenceView> CacheEngine::GetSequence(std::string_view worker,
                                                      SequenceHandle handle) {
  return impl_->Look([&](EngineCore& core) { return core.GetSequence(worker, handle); });
}

std::vector<UnavailableView> CacheEngine::ListUnavailable() {
  return impl_->Look([&](EngineCore& core) { return core.ListUnavailable(); });
}

std::vector<PinView> CacheEngine::ListPins() {
  return impl_->Look([&](EngineCore& core) { return core.ListPins(); });
}

EngineStats CacheEngine::Stats() {
  return impl_->Look([&](EngineCore& core) { return core.Stats(); });
}

uint64_t CacheEngine::LiveSequences() {
  return impl_->Look([](EngineCore& core) { return core.LiveSequences(); });
}

absl::StatusOr<PinResult> CacheEngine::PinPrefix(const PrefixSelector& prefix,
                                                 std::string_view owner, Duration duration) {
  return impl_->Change([&](EngineCore& core) { return core.PinPrefix(prefix, owner, duration); });
}

absl::Status CacheEngine::UnpinPrefix(std::string_view pin_id) {
  return impl_->Change([&](EngineCore& core) { return core.UnpinPrefix(pin_id); });
}

absl::StatusOr<uint64_t> CacheEngine::EvictPrefix(const PrefixSelector& prefix) {
  return impl_->Change([&](EngineCore& core) { return core.EvictPrefix(prefix); });
}

uint64_t CacheEngine::Flush() {
  return impl_->Change([&](EngineCore& core) { return core.Flush(); });
}

AuditReport CacheEngine::Audit(bool content) {
  AuditReport report = impl_->Look([](EngineCore& core) { return core.Audit(); });
  if (content) {
    const std::vector<AuditFinding> bad = impl_->CheckContents(true, report.content_checked);
    report.findings.insert(report.findings.end(), bad.begin(), bad.end());
  }
  return report;
}

absl::StatusOr<uint32_t> CacheEngine::EndWorker(std::string_view worker) {
  return impl_->Change([&](EngineCore& core) { return core.EndWorker(worker); });
}

uint32_t CacheEngine::StartDraining() {
  return impl_->Change([&](EngineCore& core) { return core.StartDraining(); });
}

TimePoint CacheEngine::RunMaintenance() {
  uint64_t checked = 0;
  impl_->CheckContents(false, checked);
  return impl_->Change([&](EngineCore& core) { return core.RunMaintenance(); });
}

}  // namespace quire
