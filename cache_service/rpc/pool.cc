#include "cache_service/rpc/pool.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_service/base/error.h"

namespace quire {
namespace {

constexpr uint32_t kDefaultSequenceTokens = 131072;
// Ids are at most 2^31 - 2.
constexpr uint64_t kMostBlocks = (uint64_t{1} << 31) - 1;

// Without windows this is exact; windows let a sequence hold fewer blocks.
uint32_t TokensThatSurelyFit(const EngineOptions& options) {
  const uint64_t tokens =
      uint64_t{options.block_count} / options.groups.size() * options.block_tokens;
  return static_cast<uint32_t>(std::min<uint64_t>(tokens, kDefaultSequenceTokens));
}

absl::Status Mismatch(const std::string& pool, const std::string& pool_has,
                      const std::string& worker_has) {
  return ToStatus(
      MakeError(Reason::kLayoutMismatch,
                absl::StrCat("pool ", pool, " has ", pool_has, "; the worker has ", worker_has),
                {{"pool_layout", pool_has}, {"worker_layout", worker_has}}));
}

absl::Status LayoutRequired(const char* why) { return ToStatus(InvalidArgument("layout", why)); }

}  // namespace

absl::StatusOr<std::unique_ptr<Pool>> Pool::Create(const PoolOptions& options,
                                                   std::unique_ptr<PoolMemory> memory,
                                                   const Clock& clock) {
  std::unique_ptr<Pool> pool(new Pool(options, std::move(memory), clock));
  if (options.shape.has_value()) {
    MutexLock lock(pool->mutex_);
    if (absl::Status status = pool->FixLayout(*options.shape); !status.ok()) return status;
  }
  return pool;
}

Pool::Pool(const PoolOptions& options, std::unique_ptr<PoolMemory> memory, const Clock& clock)
    : options_(options), memory_(std::move(memory)), clock_(clock) {}

absl::StatusOr<EngineOptions> Pool::OptionsFor(const PoolLayout& layout) const {
  EngineOptions options = options_.engine;
  options.groups = layout.groups;
  options.block_bytes = layout.block_bytes;
  options.layout_tag = layout.Describe();
  if (has_memory()) {
    if (layout.block_bytes == 0) return LayoutRequired("a pool with memory needs dtype and shape");
    const uint64_t blocks = options_.device_memory_bytes / layout.block_bytes;
    options.block_count = static_cast<uint32_t>(std::min(blocks, kMostBlocks));
  }
  if (options.max_sequence_tokens == 0) options.max_sequence_tokens = TokensThatSurelyFit(options);
  if (options.block_count == 0 || options.max_sequence_tokens == 0) {
    return ToStatus(
        InvalidArgument("device_memory_bytes",
                        absl::StrCat("pool ", name(), " holds ", options.block_count, " blocks of ",
                                     layout.block_bytes, " bytes, less than one for each of ",
                                     layout.groups.size(), " groups"),
                        {{"device_memory_bytes", options_.device_memory_bytes},
                         {"block_bytes", layout.block_bytes},
                         {"groups", layout.groups.size()}}));
  }
  return options;
}

absl::Status Pool::CreateEngine(const EngineOptions& options) {
  if (memory_ != nullptr && options.content_checks_per_run > 0) {
    auto checksums = BlockChecksums::Create(*memory_, *layout_);
    if (!checksums.ok()) return checksums.status();
    checksums_ = *std::move(checksums);
  }
  auto engine = CacheEngine::Create(
      options, clock_, {.observer = this, .mappings = memory_.get(), .contents = checksums_.get()});
  if (!engine.ok()) return engine.status();
  engine_ = *std::move(engine);
  return absl::OkStatus();
}

absl::Status Pool::FixLayout(const ModelShape& shape) {
  absl::StatusOr<PoolLayout> layout = MakePoolLayout(shape);
  if (!layout.ok()) return layout.status();
  absl::StatusOr<EngineOptions> options = OptionsFor(*layout);
  if (!options.ok()) return options.status();
  layout_ = std::make_unique<PoolLayout>(*std::move(layout));
  if (absl::Status status = CreateEngine(*options); !status.ok()) return status;
  if (memory_ != nullptr) {
    memory_->FixGeometry({.layout_id = layout_->layout_id,
                          .layout_version = kernels::kLayoutVersion,
                          .block_bytes = layout_->block_bytes,
                          .block_count = options->block_count});
  }
  if (draining_) engine_->StartDraining();
  engine_ptr_.store(engine_.get(), std::memory_order_release);
  return absl::OkStatus();
}

absl::Status Pool::CheckLayout(const ModelShape& shape) const {
  const absl::StatusOr<PoolLayout> wanted = MakePoolLayout(shape);
  if (!wanted.ok()) return wanted.status();
  if (SameLayout(*wanted, *layout_)) return absl::OkStatus();
  return Mismatch(name(), layout_->Describe(), wanted->Describe());
}

absl::Status Pool::EnsureLayout(const AttachParams& params,
                                const std::optional<ModelShape>& shape) {
  if (params.ranks != options_.ranks) {
    return Mismatch(name(), absl::StrCat(options_.ranks, " ranks"),
                    absl::StrCat(params.ranks, " ranks"));
  }
  if (shape.has_value() && shape->block_tokens != options_.engine.block_tokens) {
    return Mismatch(name(), absl::StrCat("blocks of ", options_.engine.block_tokens, " tokens"),
                    absl::StrCat("blocks of ", shape->block_tokens, " tokens"));
  }
  if (!shape.has_value() && has_memory() && params.map_memory) {
    return LayoutRequired("required to map the pool's memory");
  }
  if (engine() == nullptr) {
    MutexLock lock(mutex_);
    if (draining_) {
      return ToStatus(MakeError(Reason::kDraining, "the server admits nothing new"));
    }
    if (engine() == nullptr) {
      if (shape.has_value()) return FixLayout(*shape);
      if (has_memory()) return LayoutRequired("required by the first attach of this pool");
      return FixLayout(ModelShape{.dtype = std::nullopt,
                                  .layer_windows = {},
                                  .groups = {},
                                  .block_tokens = options_.engine.block_tokens});
    }
  }
  return shape.has_value() ? CheckLayout(*shape) : absl::OkStatus();
}

absl::StatusOr<PoolAttachment> Pool::Attach(const AttachParams& params,
                                            const std::optional<ModelShape>& shape) {
  if (absl::Status status = EnsureLayout(params, shape); !status.ok()) return status;
  absl::StatusOr<AttachResult> lease = engine()->Attach(params);
  if (!lease.ok()) return lease.status();
  PoolAttachment attachment{.lease = *std::move(lease), .grants = {}};
  if (memory_ == nullptr) return attachment;
  // Also without mapping, because every lease that ends is revoked.
  auto grants = memory_->Grant(attachment.lease.lease_number);
  if (!grants.ok()) {
    (void)engine()->Detach(attachment.lease.lease, options_.engine.epoch, 0);
    return grants.status();
  }
  if (params.map_memory) attachment.grants = *std::move(grants);
  return attachment;
}

uint32_t Pool::StartDraining() {
  MutexLock lock(mutex_);
  draining_ = true;
  return engine_ == nullptr ? 0 : engine_->StartDraining();
}

EngineStats Pool::Stats() const {
  if (CacheEngine* known = engine(); known != nullptr) return known->Stats();
  EngineStats stats;
  stats.pool_name = name();
  stats.block_tokens = options_.engine.block_tokens;
  MutexLock lock(mutex_);
  stats.draining = draining_;
  return stats;
}

void Pool::OnLeaseEnded(uint64_t lease_number) {
  if (memory_ != nullptr) memory_->Revoke(lease_number);
}

}  // namespace quire
