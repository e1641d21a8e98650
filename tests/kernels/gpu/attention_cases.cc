#include <cmath>
#include <string>

#include "kernels/dtype.h"
#include "tests/kernels/gpu/cases.h"
#include "tests/kernels/gpu/device_memory.h"

namespace quire::kernels::gpu {
namespace {

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

}  // namespace quire::kernels::gpu
