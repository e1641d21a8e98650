#include "cache_service/rpc/pool.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_service/base/error.h"
#include "cache_service/base/random_number.h"

namespace quire {
namespace {

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
  if (absl::Status status = CheckPool(options); !status.ok()) return status;
  std::unique_ptr<Pool> pool(new Pool(options, std::move(memory), clock));
  if (!options.shape.has_value()) return pool;
  auto fixed = pool->Build(*options.shape);
  if (!fixed.ok()) return fixed.status();
  if (absl::Status status = pool->WriteGeometry(**fixed); !status.ok()) return status;
  MutexLock lock(pool->mutex_);
  pool->Publish(*std::move(fixed));
  return pool;
}

Pool::Pool(const PoolOptions& options, std::unique_ptr<PoolMemory> memory, const Clock& clock)
    : options_(options), memory_(std::move(memory)), clock_(clock) {}

absl::StatusOr<std::unique_ptr<Pool::Fixed>> Pool::Build(const ModelShape& shape) {
  absl::StatusOr<PoolLayout> layout = MakePoolLayout(shape);
  if (!layout.ok()) return layout.status();
  absl::StatusOr<EngineOptions> options = PlanEngine(options_, *layout);
  if (!options.ok()) return options.status();
  options->hash_seed = RandomNumber();
  auto fixed = std::make_unique<Fixed>(Fixed{*std::move(layout), nullptr, nullptr});
  if (memory_ != nullptr && options->content_checks_per_run > 0) {
    auto checksums = BlockChecksums::Create(*memory_, fixed->layout);
    if (!checksums.ok()) return checksums.status();
    fixed->checksums = *std::move(checksums);
  }
  auto engine = CacheEngine::Create(
      *options, clock_,
      {.observer = this, .mappings = memory_.get(), .contents = fixed->checksums.get()});
  if (!engine.ok()) return engine.status();
  fixed->engine = *std::move(engine);
  return fixed;
}

absl::Status Pool::WriteGeometry(const Fixed& fixed) {
  if (memory_ == nullptr) return absl::OkStatus();
  return memory_->FixGeometry({.layout_id = fixed.layout.layout_id,
                               .layout_version = kernels::kLayoutVersion,
                               .block_bytes = fixed.layout.block_bytes,
                               .block_count = fixed.engine->options().block_count});
}

void Pool::Publish(std::unique_ptr<Fixed> fixed) {
  fixed_ = std::move(fixed);
  fixed_ptr_.store(fixed_.get(), std::memory_order_release);
}

absl::Status Pool::CheckLayout(const ModelShape& shape) const {
  const absl::StatusOr<PoolLayout> wanted = MakePoolLayout(shape);
  if (!wanted.ok()) return wanted.status();
  if (SameLayout(*wanted, layout())) return absl::OkStatus();
  return Mismatch(name(), layout().Describe(), wanted->Describe());
}

absl::Status Pool::CheckRequest(const AttachParams& params,
                                const std::optional<ModelShape>& shape) const {
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
  return absl::OkStatus();
}

absl::StatusOr<PoolAttachment> Pool::AttachTo(CacheEngine& engine, const AttachParams& params) {
  absl::StatusOr<AttachResult> lease = engine.Attach(params);
  if (!lease.ok()) return lease.status();
  PoolAttachment attachment{.lease = *std::move(lease), .grants = {}};
  if (memory_ == nullptr) return attachment;
  // Also without mapping, because every lease that ends is revoked.
  auto grants = memory_->Grant(attachment.lease.lease_number);
  if (!grants.ok()) {
    (void)engine.Detach(attachment.lease.lease, options_.engine.epoch, 0);
    return grants.status();
  }
  if (params.map_memory) attachment.grants = *std::move(grants);
  return attachment;
}

// The layout holds only once a lease was granted with it.
absl::StatusOr<PoolAttachment> Pool::AttachFirst(const AttachParams& params,
                                                 const std::optional<ModelShape>& shape) {
  if (draining_) {
    return ToStatus(MakeError(Reason::kDraining, "the server admits nothing new"));
  }
  if (!shape.has_value() && has_memory()) {
    return LayoutRequired("required by the first attach of this pool");
  }
  auto fixed = Build(shape.value_or(IdsOnlyShape(options_.engine.block_tokens)));
  if (!fixed.ok()) return fixed.status();
  CacheEngine& engine = *(*fixed)->engine;
  absl::StatusOr<PoolAttachment> attachment = AttachTo(engine, params);
  if (!attachment.ok()) return attachment.status();
  if (absl::Status status = WriteGeometry(**fixed); !status.ok()) {
    (void)engine.Detach(attachment->lease.lease, options_.engine.epoch, 0);
    return status;
  }
  Publish(*std::move(fixed));
  return attachment;
}

absl::StatusOr<PoolAttachment> Pool::Attach(const AttachParams& params,
                                            const std::optional<ModelShape>& shape) {
  if (absl::Status status = CheckRequest(params, shape); !status.ok()) return status;
  if (engine() == nullptr) {
    MutexLock lock(mutex_);
    if (engine() == nullptr) return AttachFirst(params, shape);
  }
  if (shape.has_value()) {
    if (absl::Status status = CheckLayout(*shape); !status.ok()) return status;
  }
  return AttachTo(*engine(), params);
}

uint32_t Pool::StartDraining() {
  MutexLock lock(mutex_);
  draining_ = true;
  return fixed_ == nullptr ? 0 : fixed_->engine->StartDraining();
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

PoolSnapshot Pool::Snapshot() const {
  return {.engine = Stats(),
          .step_latency_ns = step_latency_.Snapshot(),
          .memory_damaged = !CheckMemory().ok()};
}

uint64_t Pool::LiveSequences() const {
  CacheEngine* known = engine();
  return known == nullptr ? 0 : known->LiveSequences();
}

absl::Status Pool::CheckMemory() const {
  return memory_ == nullptr ? absl::OkStatus() : memory_->Check();
}

void Pool::OnLeaseEnded(uint64_t lease_number) {
  if (memory_ != nullptr) memory_->Revoke(lease_number);
}

}  // namespace quire
