#include <algorithm>
#include <chrono>
#include <string>

#include "kernels/dtype.h"
#include "tests/kernels/gpu/cases.h"

namespace quire::kernels::gpu {
namespace {

constexpr int64_t kLeastPool = int64_t{1} << 20;
constexpr int64_t kPattern = int64_t{1} << 20;  // bytes of values that repeat

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Result<std::unique_ptr<Bench>> Bench::Create(DeviceBackend& backend, testing::Memory& host,
                                             const BenchSizes& sizes) {
  std::unique_ptr<Bench> bench(new Bench(backend, host, sizes));
  const Result<StreamId> stream = backend.NewStream();
  if (!stream.ok()) return stream.status();
  bench->stream_ = *stream;
  for (int64_t bytes = sizes.pool_bytes; bytes >= kLeastPool; bytes /= 2) {
    const Result<std::byte*> memory = backend.AllocateDevice(static_cast<size_t>(bytes));
    if (!memory.ok()) continue;
    bench->pool_ = *memory;
    bench->pool_bytes_ = bytes;
    return bench;
  }
  return Status(StatusCode::kNoSpace, "pool_bytes", "the device has no memory for a pool");
}

Bench::~Bench() {
  if (pool_ != nullptr) backend_.FreeDevice(pool_);
}

// Realistic values everywhere: one pattern from the host, doubled on the device.
Status Bench::Fill(DType dtype) {
  if (is_filled_ && filled_ == dtype) return Status::Ok();
  testing::Random random(3);
  std::vector<std::byte> pattern(static_cast<size_t>(kPattern));
  for (int64_t i = 0; i < kPattern / ElementBytes(dtype); ++i) {
    StoreElement(dtype, pattern.data(), i, random.Normal());
  }
  if (Status s = backend_.Copy(pool_, pattern.data(), pattern.size()); !s.ok()) return s;
  for (int64_t done = kPattern; done < pool_bytes_; done *= 2) {
    const auto bytes = static_cast<size_t>(std::min(done, pool_bytes_ - done));
    if (Status s = backend_.Copy(pool_ + done, pool_, bytes); !s.ok()) return s;
  }
  filled_ = dtype;
  is_filled_ = true;
  return Status::Ok();
}

// As many layers as fit; with `layer_first` the same bytes of a layer lie together.
Result<KvPoolView> Bench::PoolFor(const DecodeShape& shape) {
  const int64_t columns = (shape.tokens + shape.block_tokens - 1) / shape.block_tokens;
  const int64_t blocks = columns * shape.batch;
  LayoutParams params{.dtype = shape.dtype,
                      .layers = sizes_.most_layers,
                      .kv_heads = sizes_.kv_heads,
                      .head_dim = sizes_.head_dim,
                      .block_tokens = shape.block_tokens};
  if (ElementBytes(shape.dtype) == 1) params.scale_kind = ScaleKind::kPerTensor;
  for (; params.layers > 0; params.layers /= 2) {
    Result<PagedKvLayout> layout = MakeLayout(params);
    if (!layout.ok()) return layout.status();
    if (blocks * layout->block_bytes > pool_bytes_) continue;
    if (shape.layer_first) {
      layout->preset = LayoutPreset::kCustom;
      layout->block_stride = layout->kv_heads * layout->head_stride;
      layout->layer_stride = blocks * layout->block_stride;
      layout->id = LayoutId(*layout);
    }
    return KvPoolView{pool_, pool_bytes_, blocks, *layout, MemoryKind::kDevice};
  }
  return Status(StatusCode::kNoSpace, "pool_bytes",
                "the pool has no room for " + std::to_string(blocks) + " blocks");
}

Result<double> Bench::Time(const std::function<Status(int)>& queue) {
  if (Status s = backend_.UseStream(stream_); !s.ok()) return s;
  Status status = queue(0);
  if (status.ok()) status = backend_.Synchronize(stream_);
  const double start = Seconds();
  for (int i = 1; i <= sizes_.repeats && status.ok(); ++i) status = queue(i);
  if (status.ok()) status = backend_.Synchronize(stream_);
  const double seconds = (Seconds() - start) / sizes_.repeats;
  if (Status s = backend_.UseStream(kDefaultStream); !s.ok()) return s;
  if (!status.ok()) return status;
  return seconds;
}

}  // namespace quire::kernels::gpu
