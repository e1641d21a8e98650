// One pool of the server: its engine and its memory, joined once the layout is known.
#ifndef QUIRE_CACHE_SERVICE_RPC_POOL_H_
#define QUIRE_CACHE_SERVICE_RPC_POOL_H_

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cache_service/base/mutex.h"
#include "cache_service/engine/cache_engine.h"
#include "cache_service/memory/block_checksums.h"
#include "cache_service/memory/pool_memory.h"
#include "cache_service/metrics/pool_snapshot.h"
#include "cache_service/metrics/rpc_stats.h"
#include "cache_service/rpc/pool_plan.h"

namespace quire {

struct PoolAttachment {
  AttachResult lease;
  // Empty if the memory was declined or belongs to the worker.
  std::vector<MemoryGrant> grants;
};

// Thread-safe.
class Pool final : public EngineObserver {
 public:
  // `memory` is null for worker memory. Errors: INVALID_ARGUMENT, for example for a pool too small
  // for one sequence.
  static absl::StatusOr<std::unique_ptr<Pool>> Create(const PoolOptions& options,
                                                      std::unique_ptr<PoolMemory> memory,
                                                      const Clock& clock);

  const PoolOptions& options() const { return options_; }

  const std::string& name() const { return options_.engine.pool_name; }

  // Null until the layout is known. Once given, both stay as they are.
  CacheEngine* engine() const {
    const Fixed* fixed = fixed_ptr_.load(std::memory_order_acquire);
    return fixed == nullptr ? nullptr : fixed->engine.get();
  }

  // Only after engine() was not null.
  const PoolLayout& layout() const { return fixed_ptr_.load(std::memory_order_acquire)->layout; }

  // The first attach that is granted fixes the layout, which takes time for the engine's tables;
  // one that is refused leaves no trace. Errors beside the engine's: LAYOUT_MISMATCH naming both
  // layouts, DRAINING.
  absl::StatusOr<PoolAttachment> Attach(const AttachParams& params,
                                        const std::optional<ModelShape>& shape);

  uint32_t StartDraining();
  EngineStats Stats() const;
  PoolSnapshot Snapshot() const;
  uint64_t LiveSequences() const;

  // Of every step, whatever call brought it.
  LatencyHistogram& step_latency() { return step_latency_; }

  const Clock& clock() const { return clock_; }

  // Whether the pool's memory is as it was made; errors as PoolMemory::Check.
  absl::Status CheckMemory() const;

  void OnLeaseEnded(uint64_t lease_number) override;

 private:
  // What follows from a layout.
  struct Fixed {
    PoolLayout layout;
    std::unique_ptr<BlockChecksums> checksums;
    std::unique_ptr<CacheEngine> engine;
  };

  Pool(const PoolOptions& options, std::unique_ptr<PoolMemory> memory, const Clock& clock);

  bool has_memory() const { return options_.engine.memory == PoolMemoryKind::kShared; }

  absl::StatusOr<std::unique_ptr<Fixed>> Build(const ModelShape& shape);
  absl::Status WriteGeometry(const Fixed& fixed);
  void Publish(std::unique_ptr<Fixed> fixed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<PoolAttachment> AttachFirst(const AttachParams& params,
                                             const std::optional<ModelShape>& shape)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<PoolAttachment> AttachTo(CacheEngine& engine, const AttachParams& params);
  absl::Status CheckRequest(const AttachParams& params,
                            const std::optional<ModelShape>& shape) const;
  absl::Status CheckLayout(const ModelShape& shape) const;

  const PoolOptions options_;
  const std::unique_ptr<PoolMemory> memory_;
  const Clock& clock_;
  LatencyHistogram step_latency_;

  mutable Mutex mutex_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  // Written once, before fixed_ptr_.
  std::unique_ptr<Fixed> fixed_ ABSL_GUARDED_BY(mutex_);
  std::atomic<const Fixed*> fixed_ptr_{nullptr};
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_RPC_POOL_H_
