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
#include "cache_service/memory/pool_layout.h"
#include "cache_service/memory/pool_memory.h"

namespace quire {

struct PoolOptions {
  // Template: groups, block_bytes, layout_tag, and for shared memory block_count, come from the
  // layout. max_sequence_tokens 0: 131072, or what the pool holds.
  EngineOptions engine;
  // Absent: the first attach decides.
  std::optional<ModelShape> shape;
  // Of each rank; only with shared memory.
  uint64_t device_memory_bytes = 0;
  uint32_t ranks = 1;
};

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
  CacheEngine* engine() const { return engine_ptr_.load(std::memory_order_acquire); }

  // Only after engine() was not null.
  const PoolLayout& layout() const { return *layout_; }

  // Fixes the layout if it is not known, which takes time for the engine's tables. Errors beside
  // the engine's: LAYOUT_MISMATCH naming both layouts, DRAINING.
  absl::StatusOr<PoolAttachment> Attach(const AttachParams& params,
                                        const std::optional<ModelShape>& shape);

  uint32_t StartDraining();
  EngineStats Stats() const;

  void OnLeaseEnded(uint64_t lease_number) override;

 private:
  Pool(const PoolOptions& options, std::unique_ptr<PoolMemory> memory, const Clock& clock);

  bool has_memory() const { return options_.engine.memory == PoolMemoryKind::kShared; }

  absl::Status CreateEngine(const EngineOptions& options) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status FixLayout(const ModelShape& shape) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<EngineOptions> OptionsFor(const PoolLayout& layout) const;
  absl::Status EnsureLayout(const AttachParams& params, const std::optional<ModelShape>& shape);
  absl::Status CheckLayout(const ModelShape& shape) const;

  const PoolOptions options_;
  const std::unique_ptr<PoolMemory> memory_;
  const Clock& clock_;

  mutable Mutex mutex_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  // Written once, before engine_ptr_.
  std::unique_ptr<PoolLayout> layout_;
  std::unique_ptr<BlockChecksums> checksums_;
  std::unique_ptr<CacheEngine> engine_;
  std::atomic<CacheEngine*> engine_ptr_{nullptr};
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_RPC_POOL_H_
