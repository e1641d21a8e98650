#include <algorithm>
#include <string>

#include "kernels/dtype.h"
#include "tests/kernels/gpu/cases.h"
#include "tests/kernels/gpu/device_memory.h"

namespace quire::kernels::gpu {

// bf16 rows of `tokens` tokens to shuffled slots; every call another layer.
Result<Record> Bench::Write(DType dtype, int32_t tokens) {
  if (Status s = Fill(dtype); !s.ok()) return s;
  const Result<KvPoolView> pool = PoolFor({1, tokens, dtype, 16, false});
  if (!pool.ok()) return pool.status();
  testing::Random random(4);
  const int64_t row = int64_t{2} * sizes_.kv_heads * sizes_.head_dim;  // K, then V
  std::vector<uint16_t> values(static_cast<size_t>(tokens * row));
  for (uint16_t& value : values) value = FloatToBf16(random.Normal());
  DeviceMemory memory(backend_);
  const Result<std::byte*> data = memory.Take(std::ssize(values) * 2);
  if (!data.ok()) return data.status();
  if (Status s = backend_.Copy(*data, values.data(), values.size() * 2); !s.ok()) return s;
  const std::vector<int32_t> slots = testing::ShuffledIds(pool->num_blocks * 16, random);
  const std::vector<int64_t> targets(slots.begin(), slots.begin() + tokens);
  const float scale = 0.02f;
  KvRows rows{.k = *data, .v = *data + row, .dtype = DType::kBF16};
  rows.k_token_stride = rows.v_token_stride = row;
  rows.k_head_stride = rows.v_head_stride = sizes_.head_dim;
  rows.k_scale = rows.v_scale = &scale;
  const Result<double> seconds = Time([&](int i) {
    rows.layer = i % pool->layout.layers;
    return backend_.WriteKv(*pool, rows, {targets.data(), tokens}, nullptr);
  });
  if (!seconds.ok()) return seconds.status();
  const double bytes =
      static_cast<double>(tokens) *
      static_cast<double>(row * 2 + 2 * sizes_.kv_heads * pool->layout.row_bytes());
  Record record{.name = std::string("write/") + Name(dtype) + "/" + std::to_string(tokens)};
  record.us = 1e6 * *seconds;
  record.gb_per_s = 1e-9 * bytes / *seconds;
  if (copy_ceiling_ > 0) record.share = 1e9 * record.gb_per_s / copy_ceiling_;
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
