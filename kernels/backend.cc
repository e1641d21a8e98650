#include "kernels/backend.h"

#include <algorithm>
#include <string>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda/make_backend.h"
#include "kernels/device_backend.h"
#include "kernels/guard.h"
#include "kernels/hash.h"
#include "kernels/ref/reference.h"
#include "kernels/simt/cuda_runtime.h"
#include "kernels/validate.h"

namespace quire::kernels {

uint64_t ChecksumSeed(const PagedKvLayout& layout, uint64_t group_index) {
  uint64_t seed = 0;
  for (uint64_t x : {uint64_t{1}, static_cast<uint64_t>(layout.dtype),
                     static_cast<uint64_t>(layout.layers), static_cast<uint64_t>(layout.kv_heads),
                     static_cast<uint64_t>(layout.head_dim), group_index}) {
    seed = Mix64(seed + kGolden + x);
  }
  return seed;
}

ChecksumSums BindChecksum(const ChecksumSums& sums, uint64_t chain) {
  return {Mix64(sums[0] + Mix64(chain)), Mix64(sums[1] + Mix64(chain + 1))};
}

Status Backend::CheckMemory(const KvPoolView& pool, const char* argument) const {
  if (pool.memory != MemoryKind::kDevice || TakesDevicePools()) return Status::Ok();
  return Status(StatusCode::kUnsupported, argument, "device memory on a host backend");
}

Status Backend::WriteKv(const KvPoolView& pool, const KvRows& rows, const TokenTargets& targets,
                        WriteReport* report) {
  return NoThrow("WriteKv", [&] {
    if (Status s = CheckMemory(pool, "pool.memory"); !s.ok()) return s;
    if (Status s = ValidateWrite(pool, rows, targets); !s.ok()) return s;
    WriteReport made;
    const auto* end = targets.slots + targets.tokens;
    made.tokens_written = std::count_if(targets.slots, end, [](int64_t slot) { return slot >= 0; });
    int64_t* const nans = report != nullptr ? &made.nan_inputs : nullptr;
    if (targets.tokens > 0) {
      if (Status s = DoWrite(pool, rows, targets, nans); !s.ok()) return s;
    }
    if (report != nullptr) *report = made;
    return Status::Ok();
  });
}

Result<AttentionPlan> Backend::Plan(const KvPoolView& pool, const BlockTableView& table,
                                    const AttentionParams& params, const PlanOptions& options) {
  return NoThrow("Plan", [&]() -> Result<AttentionPlan> {
    if (Status s = CheckMemory(pool, "pool.memory"); !s.ok()) return s;
    return PlanAttention(pool, table, params, options, Parts(pool));
  });
}

Result<AttentionPlan> Backend::PlanCascade(const KvPoolView& pool, const BlockTableView& table,
                                           int64_t prefix_tokens, const AttentionParams& params,
                                           const PlanOptions& options) {
  return NoThrow("PlanCascade", [&]() -> Result<AttentionPlan> {
    if (Status s = CheckMemory(pool, "pool.memory"); !s.ok()) return s;
    return PlanSharedPrefix(pool, table, prefix_tokens, params, options, Parts(pool));
  });
}

Status Backend::DecodeAttention(const KvPoolView& pool, const BlockTableView& table,
                                const AttentionParams& params, const AttentionPlan& plan,
                                std::span<std::byte> workspace) {
  return NoThrow("DecodeAttention", [&] {
    if (Status s = CheckMemory(pool, "pool.memory"); !s.ok()) return s;
    if (Status s = ValidateAttention(pool, table, params); !s.ok()) return s;
    if (Status s = ValidatePlan(pool, table, params, plan, workspace); !s.ok()) return s;
    return params.q_rows == 0 ? Status::Ok() : DoAttention(pool, table, params, plan, workspace);
  });
}

Status Backend::AppendAttention(const KvPoolView& pool, const BlockTableView& table,
                                const AttentionParams& params, const AttentionPlan& plan,
                                std::span<std::byte> workspace) {
  return DecodeAttention(pool, table, params, plan, workspace);
}

Status Backend::MergeStates(const MergeParams& params) {
  return NoThrow("MergeStates", [&] {
    if (Status s = ValidateMerge(params); !s.ok()) return s;
    return params.rows == 0 ? Status::Ok() : DoMerge(params);
  });
}

Status Backend::CopyBlocks(const KvPoolView& pool, std::span<const CopyOrder> orders) {
  return NoThrow("CopyBlocks", [&] {
    if (Status s = CheckMemory(pool, "pool.memory"); !s.ok()) return s;
    if (Status s = ValidateCopies(pool, orders); !s.ok()) return s;
    return orders.empty() ? Status::Ok() : DoCopy(pool, orders);
  });
}

Status Backend::GatherBlocks(const KvPoolView& pool, std::span<const int32_t> ids,
                             std::span<std::byte> destination) {
  return NoThrow("GatherBlocks", [&] {
    if (Status s = CheckMemory(pool, "pool.memory"); !s.ok()) return s;
    if (Status s = ValidateGather(pool, ids, destination); !s.ok()) return s;
    return ids.empty() ? Status::Ok() : DoGather(pool, ids, destination);
  });
}

Status Backend::ScatterBlocks(const KvPoolView& pool, std::span<const int32_t> ids,
                              std::span<const std::byte> source) {
  return NoThrow("ScatterBlocks", [&] {
    if (Status s = CheckMemory(pool, "pool.memory"); !s.ok()) return s;
    if (Status s = ValidateScatter(pool, ids, source); !s.ok()) return s;
    return ids.empty() ? Status::Ok() : DoScatter(pool, ids, source);
  });
}

Status Backend::TransferBlocks(const KvPoolView& source, const KvPoolView& destination,
                               std::span<const BlockPair> pairs) {
  return NoThrow("TransferBlocks", [&] {
    if (Status s = CheckMemory(source, "source.memory"); !s.ok()) return s;
    if (Status s = CheckMemory(destination, "destination.memory"); !s.ok()) return s;
    if (Status s = ValidateTransfer(source, destination, pairs); !s.ok()) return s;
    return pairs.empty() ? Status::Ok() : DoTransfer(source, destination, pairs);
  });
}

Status Backend::ChecksumBlocks(const KvPoolView& pool, uint64_t seed,
                               std::span<const ChecksumOrder> orders,
                               std::span<ChecksumSums> sums) {
  return NoThrow("ChecksumBlocks", [&] {
    if (Status s = CheckMemory(pool, "pool.memory"); !s.ok()) return s;
    if (Status s = ValidateChecksums(pool, orders, sums.size()); !s.ok()) return s;
    return orders.empty() ? Status::Ok() : DoChecksum(pool, seed, orders, sums);
  });
}

Result<std::unique_ptr<Backend>> CreateBackend(std::string_view name,
                                               const BackendOptions& options) {
  return NoThrow("CreateBackend", [&]() -> Result<std::unique_ptr<Backend>> {
    if (name == "reference") return ref::MakeReferenceBackend();
    if (name == "cpu") return cpu::MakeCpuBackend(options.threads);
    if (name == "cuda") {
      Result<std::unique_ptr<DeviceBackend>> device = CreateDeviceBackend();
      if (!device.ok()) return device.status();
      return std::unique_ptr<Backend>(std::move(*device));
    }
    return Status::Invalid("name", "no backend is called \"" + std::string(name) +
                                       "\"; there are \"cpu\", \"cuda\" and \"reference\"");
  });
}

Result<std::unique_ptr<DeviceBackend>> CreateDeviceBackend() {
#ifdef QUIRE_HAVE_CUDA
  return NoThrow("CreateBackend", [&]() -> Result<std::unique_ptr<DeviceBackend>> {
    Result<std::unique_ptr<Device>> device = cuda::OpenDevice();
    if (!device.ok()) return device.status();
    return cuda::MakeBackend(std::move(*device));
  });
#else
  return Status(StatusCode::kUnsupported, "name",
                "this build has no CUDA kernels: build with QUIRE_CUDA on and the CUDA toolkit");
#endif
}

}  // namespace quire::kernels
