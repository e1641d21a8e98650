// CacheEngine: block tables, prefix tree, eviction and leases of one pool.
//
//   auto engine = CacheEngine::Create(options, clock);
//   auto lease = (*engine)->Attach({.worker = "w", .incarnation = 1, .model_fingerprint = "m"});
//   auto answer = (*engine)->Step({.lease = lease->lease, .epoch = 1, .step = 1, .operations =
//   ops});
//
// Thread-safe: one mutex, taken once per public call, under which nothing blocks. Every call first
// applies what is due by the clock, so no observer can tell expiry from its time. Results are
// values; nothing points into the engine. Input from outside never ends the process: errors carry a
// Reason.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_CACHE_ENGINE_H_
#define QUIRE_CACHE_SERVICE_ENGINE_CACHE_ENGINE_H_

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cache_service/base/clock.h"
#include "cache_service/engine/admin_calls.h"
#include "cache_service/engine/engine_observer.h"
#include "cache_service/engine/engine_options.h"
#include "cache_service/engine/engine_stats.h"
#include "cache_service/engine/step.h"
#include "cache_service/engine/worker_calls.h"

namespace quire {

// What the engine may ask or tell the outside; each may be null.
struct EngineSeams {
  EngineObserver* observer = nullptr;
  // Null: every worker counts as mapped, and as gone once its lease ended.
  MappingEvidence* mappings = nullptr;
  BlockContents* contents = nullptr;
};

class CacheEngine {
 public:
  // The clock and the seams must outlive the engine. Errors: INVALID_ARGUMENT with option and
  // limit.
  static absl::StatusOr<std::unique_ptr<CacheEngine>> Create(const EngineOptions& options,
                                                             const Clock& clock,
                                                             const EngineSeams& seams = {});
  ~CacheEngine();
  CacheEngine(const CacheEngine&) = delete;
  CacheEngine& operator=(const CacheEngine&) = delete;

  const EngineOptions& options() const;

  // --- Workers (P11) ---
  absl::StatusOr<AttachResult> Attach(const AttachParams& params);
  absl::StatusOr<RenewResult> Renew(const RenewParams& params);
  absl::Status Detach(const LeaseId& lease, Epoch epoch, StepNumber completed_step,
                      CallerTenant caller = {});
  // The stream of a lease broke: the lease runs down the grace unless a call comes.
  void StreamBroken(const LeaseId& lease);

  // --- Steps (P1-P10) ---
  // The answer of a repeated step is the stored one. An error refuses the whole step.
  absl::StatusOr<std::shared_ptr<const StepResult>> Step(const StepParams& params);

  // --- Reading (no side effects, P13) ---
  absl::StatusOr<std::vector<SequenceView>> GetTables(const LeaseId& lease, Epoch epoch,
                                                      std::span<const SequenceHandle> sequences,
                                                      CallerTenant caller = {});
  // Tokens that a begin would reuse now.
  absl::StatusOr<uint32_t> PeekPrefix(const PrefixSelector& prefix);
  std::vector<WorkerView> ListWorkers();
  // Ordered by worker and handle; an empty worker means all. Tables are left empty.
  std::vector<SequenceView> ListSequences(std::string_view worker);
  absl::StatusOr<SequenceView> GetSequence(std::string_view worker, SequenceHandle handle);
  std::vector<UnavailableView> ListUnavailable();
  std::vector<PinView> ListPins();
  EngineStats Stats();
  uint64_t LiveSequences();

  // --- Administration (E9, E10) ---
  // Pins the resident whole blocks of the prefix. PIN of nothing is INVALID_ARGUMENT.
  absl::StatusOr<PinResult> PinPrefix(const PrefixSelector& prefix, std::string_view owner,
                                      Duration duration);
  absl::Status UnpinPrefix(std::string_view pin_id);
  // Takes the content at and below the prefix out of the tree; returns the number of blocks.
  absl::StatusOr<uint64_t> EvictPrefix(const PrefixSelector& prefix);
  uint64_t Flush();
  AuditReport Audit(bool content);
  absl::StatusOr<uint32_t> EndWorker(std::string_view worker);
  // Refuses begin and attach from now on and ends all pins; returns the number of live sequences.
  uint32_t StartDraining();

  // --- Time (E8) ---
  // Applies what is due; the next moment at which something will be, or TimePoint::max().
  TimePoint RunMaintenance();

 private:
  class Impl;
  explicit CacheEngine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_CACHE_ENGINE_H_
