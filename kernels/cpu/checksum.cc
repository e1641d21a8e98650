#include "kernels/cpu/checksum.h"

#include "kernels/hash.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/checksum.cc"
#include "hwy/foreach_target.h"
// After foreach_target:
#include "hwy/highway.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();

namespace quire::kernels::cpu {
namespace HWY_NAMESPACE {
namespace {

// Adds one row of `words` u64: keys are start[j] ^ columns[c].
void AddRowForTarget(const std::byte* row, size_t words, const uint64_t* HWY_RESTRICT columns,
                     const uint64_t* start, uint64_t* sums) {
  size_t c = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<uint64_t> d;
  const hn::RepartitionToNarrow<decltype(d)> halves;
  const auto product = [&](auto word, auto key) HWY_ATTR {
    const auto sum = hn::Add(hn::BitCast(halves, word), hn::BitCast(halves, key));
    const auto high = hn::ShiftRight<32>(hn::BitCast(d, sum));
    return hn::MulEven(sum, hn::BitCast(halves, high));
  };
  const size_t lanes = hn::Lanes(d);
  auto sum0 = hn::Zero(d);
  auto sum1 = hn::Zero(d);
  for (; c + lanes <= words; c += lanes) {
    const auto word = hn::LoadU(d, reinterpret_cast<const uint64_t*>(row) + c);
    const auto column = hn::LoadU(d, columns + c);
    sum0 = hn::Add(sum0, product(word, hn::Xor(column, hn::Set(d, start[0]))));
    sum1 = hn::Add(sum1, product(word, hn::Xor(column, hn::Set(d, start[1]))));
  }
  // Not SumOfLanes: its 64-bit sum is a signed one, which may overflow.
  HWY_ALIGN uint64_t parts[2 * HWY_LANES(uint64_t)];
  hn::Store(sum0, d, parts);
  hn::Store(sum1, d, parts + lanes);
  for (size_t i = 0; i < lanes; ++i) {
    sums[0] += parts[i];
    sums[1] += parts[lanes + i];
  }
#endif
  for (; c < words; ++c) {
    const uint64_t word = reinterpret_cast<const uint64_t*>(row)[c];
    for (int j = 0; j < 2; ++j) {
      const uint64_t key = start[j] ^ columns[c];
      const uint32_t low = static_cast<uint32_t>(word) + static_cast<uint32_t>(key);
      const uint32_t high = static_cast<uint32_t>(word >> 32) + static_cast<uint32_t>(key >> 32);
      sums[j] += uint64_t{low} * high;
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace quire::kernels::cpu

HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire::kernels::cpu {
namespace {

HWY_EXPORT(AddRowForTarget);

// D 256 of fp32, and the scale.
constexpr size_t kMaxWords = 256 * 4 / 8 + 1;

struct Columns {
  Columns() {
    for (size_t c = 0; c < kMaxWords; ++c) keys[c] = Mix64((c + 1) * kGolden);
  }

  uint64_t keys[kMaxWords];
};

}  // namespace

ChecksumSums ChecksumBlock(const KvPoolView& pool, uint64_t seed, const ChecksumOrder& order) {
  static const Columns columns;
  const PagedKvLayout& layout = pool.layout;
  const auto words = static_cast<size_t>(layout.row_bytes() / 8);
  const bool scaled = layout.scale_kind == ScaleKind::kPerToken;
  ChecksumSums sums = {0, 0};
  const auto add_row = HWY_DYNAMIC_DISPATCH(AddRowForTarget);
  for (int64_t run = 0; run < int64_t{2} * layout.layers * layout.kv_heads; ++run) {
    const bool is_v = run % 2 != 0;
    const int64_t head = run / 2 % layout.kv_heads;
    const int64_t layer = run / 2 / layout.kv_heads;
    for (int64_t slot = order.slot_begin; slot < order.slot_end; ++slot) {
      const uint64_t row = static_cast<uint64_t>(run) * 256 + static_cast<uint64_t>(slot);
      const uint64_t start[2] = {Mix64(seed + (2 * row + 1) * kGolden),
                                 Mix64(seed + (2 * row + 2) * kGolden)};
      const int64_t at = layout.RowOffset(order.block, layer, head, is_v, slot);
      add_row(pool.base + at * ElementBytes(layout.dtype), words, columns.keys, start, sums.data());
      if (!scaled) continue;
      const auto* scale = reinterpret_cast<const uint32_t*>(pool.base) +
                          layout.ScaleOffset(order.block, layer, head, is_v, slot);
      const uint64_t word = *scale;
      add_row(reinterpret_cast<const std::byte*>(&word), 1, columns.keys + words, start,
              sums.data());
    }
  }
  return sums;
}

}  // namespace quire::kernels::cpu
#endif  // HWY_ONCE
