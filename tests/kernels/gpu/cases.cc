#include "tests/kernels/gpu/cases.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>

#include "kernels/dtype.h"

namespace quire::kernels::gpu {
namespace {

constexpr int64_t kLeastPool = int64_t{1} << 20;
constexpr int64_t kPattern = int64_t{1} << 20;  // bytes of values that repeat

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Device memory for the length of a case.
class DeviceMemory {
 public:
  explicit DeviceMemory(DeviceBackend& backend) : backend_(backend) {}

  ~DeviceMemory() {
    for (std::byte* part : parts_) backend_.FreeDevice(part);
  }

  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  Result<std::byte*> Take(int64_t bytes) {
    Result<std::byte*> part =
        backend_.AllocateDevice(static_cast<size_t>(std::max<int64_t>(bytes, 16)));
    if (part.ok()) parts_.push_back(*part);
    return part;
  }

 private:
  DeviceBackend& backend_;
  std::vector<std::byte*> parts_;
};

std::string NameOf(const DecodeShape& s) {
  return std::string("decode/") + Name(s.dtype) + "/B" + std::to_string(s.batch) + "/" +
         std::to_string(s.tokens) + "/N" + std::to_string(s.block_tokens) +
         (s.layer_first ? "/layer-first" : "/block-first");
}

}  // namespace

std::vector<DecodeShape> DecodeShapes() {
  std::vector<DecodeShape> shapes;
  // Types outermost: the memory is filled once for each.
  for (const DType dtype : {DType::kBF16, DType::kE4M3}) {
    for (const int32_t tokens : {1024, 4096, 32768}) {
      for (const int32_t batch : {1, 8, 32, 128}) {
        for (const int32_t n : {16, 64}) {
          for (const bool layer_first : {false, true}) {
            shapes.push_back({batch, tokens, dtype, n, layer_first});
          }
        }
      }
    }
  }
  return shapes;
}

// An attention call whose tensors are on the device.
struct Bench::Call {
  explicit Call(DeviceBackend& backend) : memory(backend) {}

  // Tables over shuffled blocks; `q` new tokens for each of `batch` sequences.
  Status Make(const KvPoolView& pool, const BenchSizes& sizes, const DecodeShape& shape, int32_t q,
              DeviceBackend& backend) {
    testing::Random random(1);
    const int64_t columns = (shape.tokens + shape.block_tokens - 1) / shape.block_tokens;
    ids = testing::ShuffledIds(pool.num_blocks, random);
    lens.assign(static_cast<size_t>(shape.batch), shape.tokens);
    for (int32_t i = 0; i <= shape.batch; ++i) cu.push_back(i * q);
    scales.assign(static_cast<size_t>(sizes.kv_heads), 0.5f);
    table = {ids.data(), columns, shape.batch, columns, lens.data()};
    const int64_t heads = int64_t{sizes.kv_heads} * sizes.group;
    const int64_t row = heads * sizes.head_dim;
    const int64_t rows = int64_t{shape.batch} * q;
    std::vector<uint16_t> values(static_cast<size_t>(rows * row));
    for (uint16_t& value : values) value = FloatToBf16(random.Normal());
    const Result<std::byte*> query = memory.Take(rows * row * 2);
    const Result<std::byte*> out = memory.Take(rows * row * 2);
    if (!query.ok()) return query.status();
    if (!out.ok()) return out.status();
    if (Status s = backend.Copy(*query, values.data(), values.size() * 2); !s.ok()) return s;
    params.q = *query;
    params.out = *out;
    params.q_dtype = params.out_dtype = DType::kBF16;
    params.q_row_stride = params.out_row_stride = row;
    params.q_head_stride = params.out_head_stride = sizes.head_dim;
    params.q_rows = rows;
    params.cu_q_lens = cu.data();
    params.q_heads = static_cast<int32_t>(heads);
    params.scale = 1.0f / std::sqrt(static_cast<float>(sizes.head_dim));
    params.k_scale = params.v_scale = scales.data();
    Result<AttentionPlan> made = backend.Plan(pool, table, params, {});
    if (!made.ok()) return made.status();
    plan = std::move(*made);
    const Result<std::byte*> space = memory.Take(plan.workspace_bytes);
    if (!space.ok()) return space.status();
    workspace = {*space, static_cast<size_t>(plan.workspace_bytes)};
    return Status::Ok();
  }

  DeviceMemory memory;
  std::vector<int32_t> ids;
  std::vector<int32_t> lens;
  std::vector<int32_t> cu;
  std::vector<float> scales;
  BlockTableView table;
  AttentionParams params;
  AttentionPlan plan;
  std::span<std::byte> workspace;
};

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
  LayoutParams params{.dtype = shape.dtype,
                      .layers = sizes_.most_layers,
                      .kv_heads = sizes_.kv_heads,
                      .head_dim = sizes_.head_dim,
                      .block_tokens = shape.block_tokens};
  if (ElementBytes(shape.dtype) == 1) params.scale_kind = ScaleKind::kPerTensor;
  for (; params.layers > 0; params.layers /= 2) {
    Result<PagedKvLayout> layout = MakeLayout(params);
    if (!layout.ok()) return layout.status();
    const int64_t blocks = columns * shape.batch;
    if (blocks * layout->block_bytes > pool_bytes_) continue;
    if (shape.layer_first) {
      layout->preset = LayoutPreset::kCustom;
      layout->block_stride = layout->kv_heads * layout->head_stride;
      layout->layer_stride = blocks * layout->block_stride;
      layout->id = LayoutId(*layout);
    }
    return KvPoolView{pool_, pool_bytes_, blocks, *layout, MemoryKind::kDevice};
  }
  return Status(StatusCode::kNoSpace, "pool_bytes", NameOf(shape) + " does not fit the pool");
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

Result<double> Bench::Attend(const KvPoolView& pool, Call& call) {
  return Time([&](int i) {
    call.params.layer = i % pool.layout.layers;
    return backend_.DecodeAttention(pool, call.table, call.params, call.plan, call.workspace);
  });
}

Result<Record> Bench::Decode(const DecodeShape& shape) {
  if (Status s = Fill(shape.dtype); !s.ok()) return s;
  const Result<KvPoolView> pool = PoolFor(shape);
  if (!pool.ok()) return pool.status();
  Call call(backend_);
  if (Status s = call.Make(*pool, sizes_, shape, 1, backend_); !s.ok()) return s;
  const Result<double> seconds = Attend(*pool, call);
  if (!seconds.ok()) return seconds.status();
  const double kv = 2.0 * shape.batch * shape.tokens * sizes_.kv_heads *
                    static_cast<double>(pool->layout.row_bytes());
  const double rows = 2.0 * shape.batch * sizes_.kv_heads * sizes_.group * sizes_.head_dim * 2;
  Record record{.name = NameOf(shape) + "/L" + std::to_string(pool->layout.layers)};
  record.us = 1e6 * *seconds;
  record.gb_per_s = 1e-9 * (kv + rows) / *seconds;
  if (read_ceiling_ > 0) record.share = 1e9 * record.gb_per_s / read_ceiling_;
  return record;
}

Result<Record> Bench::Prefill(DType dtype) {
  if (Status s = Fill(dtype); !s.ok()) return s;
  const DecodeShape shape{1, sizes_.prefill_tokens, dtype, 16, false};
  const Result<KvPoolView> pool = PoolFor(shape);
  if (!pool.ok()) return pool.status();
  Call call(backend_);
  if (Status s = call.Make(*pool, sizes_, shape, shape.tokens, backend_); !s.ok()) return s;
  const Result<double> seconds = Attend(*pool, call);
  if (!seconds.ok()) return seconds.status();
  const double n = shape.tokens;
  const double flops = 4.0 * sizes_.head_dim * sizes_.kv_heads * sizes_.group * (n * (n + 1) / 2);
  Record record{.name = std::string("prefill/") + Name(dtype) + "/" + std::to_string(shape.tokens)};
  record.us = 1e6 * *seconds;
  record.tflop_per_s = 1e-12 * flops / *seconds;
  return record;
}

Result<Record> Bench::Transfers(const KvPoolView& from, const KvPoolView& to, const char* name) {
  std::vector<BlockPair> pairs;
  for (int32_t i = 0; i < to.num_blocks; ++i) pairs.push_back({i, i});
  const Result<double> seconds =
      Time([&](int) { return backend_.TransferBlocks(from, to, pairs); });
  if (!seconds.ok()) return seconds.status();
  Record record{.name = name};
  record.us = 1e6 * *seconds;
  record.gb_per_s =
      1e-9 * static_cast<double>(to.num_blocks * to.layout.content_bytes()) / *seconds;
  return record;
}

Result<std::vector<Record>> Bench::CacheOps() {
  if (Status s = Fill(DType::kBF16); !s.ok()) return s;
  const DecodeShape shape{2 * sizes_.copy_blocks, 16, DType::kBF16, 16, false};
  const Result<KvPoolView> made = PoolFor(shape);
  if (!made.ok()) return made.status();
  const KvPoolView& pool = *made;
  const double bytes = static_cast<double>(sizes_.copy_blocks * pool.layout.content_bytes());
  std::vector<CopyOrder> copies;
  std::vector<ChecksumOrder> sums;
  for (int32_t i = 0; i < sizes_.copy_blocks; ++i) {
    copies.push_back({i, i + sizes_.copy_blocks, 16});
    sums.push_back({i, 0, 16});
  }
  std::vector<ChecksumSums> result(sums.size());
  const Result<double> copy = Time([&](int) { return backend_.CopyBlocks(pool, copies); });
  if (!copy.ok()) return copy.status();
  const Result<double> sum =
      Time([&](int) { return backend_.ChecksumBlocks(pool, 0, sums, result); });
  if (!sum.ok()) return sum.status();
  std::vector<Record> records = {
      {.name = "copy_blocks", .us = 1e6 * *copy, .gb_per_s = 2e-9 * bytes / *copy},
      {.name = "checksum_blocks", .us = 1e6 * *sum, .gb_per_s = 1e-9 * bytes / *sum}};
  if (copy_ceiling_ > 0) records[0].share = 1e9 * records[0].gb_per_s / copy_ceiling_;
  if (read_ceiling_ > 0) records[1].share = 1e9 * records[1].gb_per_s / read_ceiling_;
  KvPoolView part = pool;
  part.num_blocks = std::min<int64_t>(sizes_.copy_blocks, host_.bytes() / pool.layout.block_bytes);
  const KvPoolView host{host_.data(), host_.bytes(), part.num_blocks, pool.layout,
                        MemoryKind::kHost};
  Result<Record> offload = Transfers(part, host, "offload_blocks");
  if (!offload.ok()) return offload.status();
  Result<Record> onboard = Transfers(host, part, "onboard_blocks");
  if (!onboard.ok()) return onboard.status();
  records.push_back(*offload);
  records.push_back(*onboard);
  return records;
}

}  // namespace quire::kernels::gpu
