// The device backend: work goes to the device in jobs. The same class serves a GPU and the
// emulator.
#include <algorithm>
#include <string>
#include <vector>

#include "kernels/cpu/copy.h"
#include "kernels/cuda/calls.h"
#include "kernels/cuda/make_backend.h"
#include "kernels/guard.h"

namespace quire::kernels::QUIRE_SIMT {
namespace {

constexpr int kCtasPerMultiprocessor = 2;

class StreamBackend final : public DeviceBackend {
 public:
  explicit StreamBackend(std::unique_ptr<Device> device)
      : device_(std::move(device)), arena_(*device_) {}

  std::string_view name() const override { return "cuda"; }

  Result<StreamId> NewStream() override {
    return NoThrow("NewStream", [&] { return device_->NewStream(); });
  }

  Status UseStream(StreamId stream) override {
    return NoThrow("UseStream", [&] {
      if (Status s = device_->CheckStream(stream); !s.ok()) return s;
      stream_ = stream;
      return Status::Ok();
    });
  }

  Result<EventId> Record(StreamId stream) override {
    return NoThrow("Record", [&] { return device_->Record(stream); });
  }

  Status Wait(StreamId stream, EventId event) override {
    return NoThrow("Wait", [&] { return device_->Wait(stream, event); });
  }

  Result<bool> HasPassed(EventId event) override {
    return NoThrow("HasPassed", [&] { return device_->HasPassed(event); });
  }

  void Release(EventId event) override { device_->Release(event); }

  Status Synchronize(StreamId stream) override {
    return NoThrow("Synchronize", [&] { return device_->Synchronize(stream); });
  }

  Result<std::byte*> AllocateDevice(size_t bytes) override {
    return NoThrow("AllocateDevice", [&] { return device_->Allocate(bytes); });
  }

  void FreeDevice(std::byte* memory) override { device_->Free(memory); }

  Status Copy(void* to, const void* from, size_t bytes) override {
    return NoThrow("Copy", [&] {
      if (Status s = device_->Copy(stream_, to, from, bytes); !s.ok()) return s;
      return stream_ == kDefaultStream ? device_->Synchronize(stream_) : Status::Ok();
    });
  }

 private:
  bool TakesDevicePools() const override { return true; }

  // CTAs that run at once, per KV head.
  int Parts(const KvPoolView& pool) const override {
    const int heads = std::max(1, pool.layout.kv_heads);
    return std::max(1, device_->multiprocessors() * kCtasPerMultiprocessor / heads);
  }

  Status DoWrite(const KvPoolView& pool, const KvRows& rows, const TokenTargets& targets,
                 int64_t* nan_inputs) override {
    uint64_t nans = 0;
    uint64_t* const wanted = nan_inputs != nullptr ? &nans : nullptr;
    Status s = Run(pool, [&](Job& job) { RunWrite(job, pool, rows, targets, wanted); });
    if (s.ok() && nan_inputs != nullptr) *nan_inputs = static_cast<int64_t>(nans);
    return s;
  }

  Status DoAttention(const KvPoolView& pool, const BlockTableView& table,
                     const AttentionParams& params, const AttentionPlan& plan,
                     std::span<std::byte> workspace) override {
    return Run(pool, [&](Job& job) { RunAttention(job, pool, table, params, plan, workspace); });
  }

  Status DoMerge(const MergeParams& params) override {
    Job job(*device_, arena_, stream_);
    RunMerge(job, params);
    return job.Finish();
  }

  Status DoCopy(const KvPoolView& pool, std::span<const CopyOrder> orders) override {
    const std::vector<size_t> cuts = cpu::CutIntoWaves(orders);
    for (size_t wave = 0; wave + 1 < cuts.size(); ++wave) {
      // A block may not be its own target in a kernel.
      std::vector<CopyOrder> moves;
      for (size_t i = cuts[wave]; i < cuts[wave + 1]; ++i) {
        if (orders[i].source != orders[i].destination) moves.push_back(orders[i]);
      }
      if (Status s = Move(pool, pool, moves); !s.ok()) return s;
    }
    return Status::Ok();
  }

  Status DoGather(const KvPoolView& pool, std::span<const int32_t> ids,
                  std::span<std::byte> destination) override {
    std::vector<CopyOrder> orders;
    for (int32_t id : ids) {
      orders.push_back({id, static_cast<int32_t>(orders.size()), pool.layout.block_tokens()});
    }
    return Run(pool, [&](Job& job) {
      std::byte* dense = job.InOut(destination.data(), destination.size(), alignof(Vec16));
      RunMoves(job, pool.base, pool.layout, dense, DenseLayout(pool.layout), orders);
    });
  }

  Status DoScatter(const KvPoolView& pool, std::span<const int32_t> ids,
                   std::span<const std::byte> source) override {
    std::vector<CopyOrder> orders;
    for (int32_t id : ids) {
      orders.push_back({static_cast<int32_t>(orders.size()), id, pool.layout.block_tokens()});
    }
    return Run(pool, [&](Job& job) {
      const std::byte* dense = job.In(source.data(), source.size(), alignof(Vec16));
      RunMoves(job, dense, DenseLayout(pool.layout), pool.base, pool.layout, orders);
    });
  }

  Status DoTransfer(const KvPoolView& source, const KvPoolView& destination,
                    std::span<const BlockPair> pairs) override {
    if (IsSameExtent(source.layout, destination.layout)) {
      return TransferExtents(source, destination, pairs);
    }
    std::vector<CopyOrder> orders;
    for (const BlockPair& pair : pairs) {
      orders.push_back({pair.source, pair.destination, source.layout.block_tokens()});
    }
    return Move(source, destination, orders);
  }

  Status DoChecksum(const KvPoolView& pool, uint64_t seed, std::span<const ChecksumOrder> orders,
                    std::span<ChecksumSums> sums) override {
    return Run(pool, [&](Job& job) { RunChecksums(job, pool, seed, orders, sums); });
  }

  static bool IsSameExtent(const PagedKvLayout& a, const PagedKvLayout& b) {
    return a.IsOneExtent() && b.IsOneExtent() && a.preset == b.preset;
  }

  // Kernels reach the pool from now on.
  Status Prepare(const KvPoolView& pool) {
    if (pool.memory != MemoryKind::kDevice) {
      return device_->Pin(pool.base, static_cast<size_t>(pool.bytes));
    }
    if (device_->IsReachable(pool.base) && device_->IsReachable(pool.base + pool.bytes - 1)) {
      return Status::Ok();
    }
    return Status::Invalid("pool.memory", "the pool is not in device memory");
  }

  template <typename Body>
  Status Run(const KvPoolView& pool, const Body& body) {
    if (Status s = Prepare(pool); !s.ok()) return s;
    Job job(*device_, arena_, stream_);
    body(job);
    return job.Finish();
  }

  Status Move(const KvPoolView& from, const KvPoolView& to, std::span<const CopyOrder> orders) {
    if (Status s = Prepare(from); !s.ok()) return s;
    return Run(
        to, [&](Job& job) { RunMoves(job, from.base, from.layout, to.base, to.layout, orders); });
  }

  // One copy engine command per block.
  Status TransferExtents(const KvPoolView& from, const KvPoolView& to,
                         std::span<const BlockPair> pairs) {
    if (Status s = Prepare(from); !s.ok()) return s;
    if (Status s = Prepare(to); !s.ok()) return s;
    const auto bytes = static_cast<size_t>(from.layout.content_bytes());
    for (const BlockPair& pair : pairs) {
      Status s = device_->Copy(stream_, to.base + pair.destination * to.layout.block_bytes,
                               from.base + pair.source * from.layout.block_bytes, bytes);
      if (!s.ok()) return s;
    }
    return stream_ == kDefaultStream ? device_->Synchronize(stream_) : Status::Ok();
  }

  const std::unique_ptr<Device> device_;
  Arena arena_;
  StreamId stream_ = kDefaultStream;
};

}  // namespace

Result<std::unique_ptr<DeviceBackend>> MakeBackend(std::unique_ptr<Device> device) {
  return NoThrow("CreateBackend", [&]() -> Result<std::unique_ptr<DeviceBackend>> {
    return std::unique_ptr<DeviceBackend>(std::make_unique<StreamBackend>(std::move(device)));
  });
}

}  // namespace quire::kernels::QUIRE_SIMT
