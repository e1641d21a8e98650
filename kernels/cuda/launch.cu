// The device backend: checks on the host, then work on the device. The same class serves a GPU and
// the emulator.
#include <algorithm>
#include <string>
#include <vector>

#include "kernels/cpu/copy.h"
#include "kernels/cuda/calls.h"
#include "kernels/cuda/make_backend.h"
#include "kernels/guard.h"
#include "kernels/validate.h"

namespace quire::kernels::QUIRE_SIMT {
namespace {

constexpr int kCtasPerMultiprocessor = 2;

// What the validators see: they only look at shapes.
KvPoolView AsHost(KvPoolView pool) {
  pool.memory = MemoryKind::kHost;
  return pool;
}

class StreamBackend final : public DeviceBackend {
 public:
  explicit StreamBackend(std::unique_ptr<Device> device)
      : device_(std::move(device)), arena_(*device_) {}

  std::string_view name() const override { return "cuda"; }

  Status WriteKv(const KvPoolView& pool, const KvRows& rows, const TokenTargets& targets,
                 WriteReport* report) override {
    return NoThrow("WriteKv", [&] {
      if (Status s = ValidateWrite(AsHost(pool), rows, targets); !s.ok()) return s;
      uint64_t nans = 0;
      uint64_t* const wanted = report != nullptr ? &nans : nullptr;
      Status s = Run(pool, [&](Job& job) { RunWrite(job, pool, rows, targets, wanted); });
      if (!s.ok() || report == nullptr) return s;
      *report = {0, static_cast<int64_t>(nans)};
      for (int64_t i = 0; i < targets.tokens; ++i) {
        if (targets.slots[i] >= 0) ++report->tokens_written;
      }
      return s;
    });
  }

  Result<AttentionPlan> Plan(const KvPoolView& pool, const BlockTableView& table,
                             const AttentionParams& params, const PlanOptions& options) override {
    return NoThrow(
        "Plan", [&] { return PlanAttention(AsHost(pool), table, params, options, Parts(pool)); });
  }

  Result<AttentionPlan> PlanCascade(const KvPoolView& pool, const BlockTableView& table,
                                    int64_t prefix_tokens, const AttentionParams& params,
                                    const PlanOptions& options) override {
    return NoThrow("PlanCascade", [&] {
      return PlanSharedPrefix(AsHost(pool), table, prefix_tokens, params, options, Parts(pool));
    });
  }

  Status DecodeAttention(const KvPoolView& pool, const BlockTableView& table,
                         const AttentionParams& params, const AttentionPlan& plan,
                         std::span<std::byte> workspace) override {
    return NoThrow("DecodeAttention", [&] {
      const KvPoolView host = AsHost(pool);
      if (Status s = ValidateAttention(host, table, params); !s.ok()) return s;
      if (Status s = ValidatePlan(host, table, params, plan, workspace); !s.ok()) return s;
      if (params.q_rows == 0) return Status::Ok();
      return Run(pool, [&](Job& job) { RunAttention(job, pool, table, params, plan, workspace); });
    });
  }

  // The plan decides how many rows an item has, the item decides the kernel.
  Status AppendAttention(const KvPoolView& pool, const BlockTableView& table,
                         const AttentionParams& params, const AttentionPlan& plan,
                         std::span<std::byte> workspace) override {
    return DecodeAttention(pool, table, params, plan, workspace);
  }

  Status MergeStates(const MergeParams& params) override {
    return NoThrow("MergeStates", [&] {
      if (Status s = ValidateMerge(params); !s.ok()) return s;
      if (params.rows == 0) return Status::Ok();
      Job job(*device_, arena_, stream_);
      RunMerge(job, params);
      return job.Finish();
    });
  }

  Status CopyBlocks(const KvPoolView& pool, std::span<const CopyOrder> orders) override {
    return NoThrow("CopyBlocks", [&] {
      if (Status s = ValidateCopies(AsHost(pool), orders); !s.ok()) return s;
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
    });
  }

  Status GatherBlocks(const KvPoolView& pool, std::span<const int32_t> ids,
                      std::span<std::byte> destination) override {
    return NoThrow("GatherBlocks", [&] {
      if (Status s = ValidateIds(AsHost(pool), ids, false, destination.size()); !s.ok()) return s;
      if (Status s = CheckDense(destination.data(), "destination"); !s.ok()) return s;
      std::vector<CopyOrder> orders;
      for (int32_t id : ids) {
        orders.push_back({id, static_cast<int32_t>(orders.size()), pool.layout.block_tokens()});
      }
      return Run(pool, [&](Job& job) {
        std::byte* dense = job.InOut(destination.data(), destination.size());
        RunMoves(job, pool.base, pool.layout, dense, DenseLayout(pool.layout), orders);
      });
    });
  }

  Status ScatterBlocks(const KvPoolView& pool, std::span<const int32_t> ids,
                       std::span<const std::byte> source) override {
    return NoThrow("ScatterBlocks", [&] {
      if (Status s = ValidateIds(AsHost(pool), ids, true, source.size()); !s.ok()) return s;
      if (Status s = CheckDense(source.data(), "source"); !s.ok()) return s;
      std::vector<CopyOrder> orders;
      for (int32_t id : ids) {
        orders.push_back({static_cast<int32_t>(orders.size()), id, pool.layout.block_tokens()});
      }
      return Run(pool, [&](Job& job) {
        const std::byte* dense = job.In(source.data(), source.size());
        RunMoves(job, dense, DenseLayout(pool.layout), pool.base, pool.layout, orders);
      });
    });
  }

  Status TransferBlocks(const KvPoolView& source, const KvPoolView& destination,
                        std::span<const BlockPair> pairs) override {
    return NoThrow("TransferBlocks", [&] {
      Status s = ValidateTransfer(AsHost(source), AsHost(destination), pairs);
      if (!s.ok()) return s;
      if (IsSameExtent(source.layout, destination.layout)) {
        return TransferExtents(source, destination, pairs);
      }
      std::vector<CopyOrder> orders;
      for (const BlockPair& pair : pairs) {
        orders.push_back({pair.source, pair.destination, source.layout.block_tokens()});
      }
      return Move(source, destination, orders);
    });
  }

  Status ChecksumBlocks(const KvPoolView& pool, uint64_t seed,
                        std::span<const ChecksumOrder> orders,
                        std::span<ChecksumSums> sums) override {
    return NoThrow("ChecksumBlocks", [&] {
      if (Status s = ValidateChecksums(AsHost(pool), orders, sums.size()); !s.ok()) return s;
      return Run(pool, [&](Job& job) { RunChecksums(job, pool, seed, orders, sums); });
    });
  }

  Result<StreamId> NewStream() override { return device_->NewStream(); }

  Status UseStream(StreamId stream) override {
    if (Status s = CheckStream(stream); !s.ok()) return s;
    stream_ = stream;
    return Status::Ok();
  }

  Result<EventId> Record(StreamId stream) override {
    if (Status s = CheckStream(stream); !s.ok()) return s;
    return device_->Record(stream);
  }

  Status Wait(StreamId stream, EventId event) override {
    if (Status s = CheckStream(stream); !s.ok()) return s;
    return device_->Wait(stream, event);
  }

  Result<bool> HasPassed(EventId event) override { return device_->HasPassed(event); }

  void Release(EventId event) override { device_->Release(event); }

  Status Synchronize(StreamId stream) override {
    if (Status s = CheckStream(stream); !s.ok()) return s;
    return device_->Synchronize(stream);
  }

  Result<std::byte*> AllocateDevice(size_t bytes) override { return device_->Allocate(bytes); }

  void FreeDevice(std::byte* memory) override { device_->Free(memory); }

  Status Copy(void* to, const void* from, size_t bytes) override {
    if (Status s = device_->Copy(stream_, to, from, bytes); !s.ok()) return s;
    return stream_ == kDefaultStream ? device_->Synchronize(stream_) : Status::Ok();
  }

 private:
  // CTAs that run at once, per KV head.
  int Parts(const KvPoolView& pool) const {
    const int heads = std::max(1, pool.layout.kv_heads);
    return std::max(1, device_->multiprocessors() * kCtasPerMultiprocessor / heads);
  }

  static bool IsSameExtent(const PagedKvLayout& a, const PagedKvLayout& b) {
    return a.IsOneExtent() && b.IsOneExtent() && a.preset == b.preset;
  }

  static Status CheckDense(const void* memory, const char* argument) {
    if (reinterpret_cast<uintptr_t>(memory) % 16 == 0) return Status::Ok();
    return Status::Invalid(argument, "dense memory is not 16-byte aligned");
  }

  Status CheckStream(StreamId stream) const {
    if (device_->HasStream(stream)) return Status::Ok();
    return Status::Invalid("stream", "there is no stream " + std::to_string(stream));
  }

  Status Prepare(const KvPoolView& pool) {
    if (pool.memory == MemoryKind::kDevice) return Status::Ok();
    return device_->Pin(pool.base, static_cast<size_t>(pool.bytes));
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

#ifdef __CUDACC__
Result<std::unique_ptr<DeviceBackend>> MakeBackend() {
  const DeviceOptions options;
#else
Result<std::unique_ptr<DeviceBackend>> MakeBackend(const DeviceOptions& options) {
#endif
  return NoThrow("CreateBackend", [&]() -> Result<std::unique_ptr<DeviceBackend>> {
    Result<std::unique_ptr<Device>> device = Device::Open(options);
    if (!device.ok()) return device.status();
    return std::unique_ptr<DeviceBackend>(std::make_unique<StreamBackend>(std::move(*device)));
  });
}

}  // namespace quire::kernels::QUIRE_SIMT
