#include "tests/kernels/testing/pool_fixture.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "kernels/dtype.h"
#include "kernels/hash.h"

namespace quire::kernels::testing {
namespace {

uint32_t PoisonBits(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 0x7fc00000u;
    case DType::kF16:
      return 0x7e00u;
    case DType::kBF16:
      return 0x7fc0u;
    case DType::kE4M3:
      return 0x7fu;
    case DType::kI8:
      return 0x80u;
  }
  return 0;
}

[[noreturn]] void Fail(const char* what, const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", what, why.c_str());
  std::abort();
}

}  // namespace

uint64_t Random::Next() {
  state_ += kGolden;
  return Mix64(state_);
}

float Random::Normal() {
  // Sum of four 16-bit uniforms, centred; variance of one is 2^32 / 12.
  const uint64_t bits = Next();
  const auto sum = static_cast<int64_t>((bits & 0xffff) + ((bits >> 16) & 0xffff) +
                                        ((bits >> 32) & 0xffff) + (bits >> 48));
  return static_cast<float>(sum - 2 * 0xffff) * (1.7320508f / 65536.0f);
}

Memory::Memory(int64_t bytes) : bytes_(bytes) {
  void* data = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) Fail("mmap", std::to_string(bytes));
  data_ = static_cast<std::byte*>(data);
}

Memory::~Memory() { munmap(data_, static_cast<size_t>(bytes_)); }

void Poison(DType dtype, void* data, int64_t elements) {
  const uint32_t bits = PoisonBits(dtype);
  const auto size = static_cast<size_t>(ElementBytes(dtype));
  auto* bytes = static_cast<std::byte*>(data);
  for (int64_t i = 0; i < elements; ++i) {
    std::memcpy(bytes + static_cast<size_t>(i) * size, &bits, size);
  }
}

bool IsPoison(DType dtype, const void* data, int64_t element) {
  const uint32_t bits = PoisonBits(dtype);
  const auto size = static_cast<size_t>(ElementBytes(dtype));
  return std::memcmp(static_cast<const std::byte*>(data) + static_cast<size_t>(element) * size,
                     &bits, size) == 0;
}

PagedKvLayout Layout(const LayoutParams& params) {
  Result<PagedKvLayout> layout = MakeLayout(params);
  if (!layout.ok()) Fail("layout", layout.status().message());
  return *layout;
}

int64_t PoolBytes(const PagedKvLayout& l, int64_t blocks) {
  const int64_t rows = (blocks - 1) * l.block_stride + (l.layers - 1) * l.layer_stride +
                       (l.kv_heads - 1) * l.head_stride + std::max(l.k_offset, l.v_offset) +
                       (l.block_tokens() - 1) * l.token_stride + l.head_dim;
  const int64_t scales =
      l.scale_offset + (blocks - 1) * l.scale_block_stride + (l.layers - 1) * l.scale_layer_stride +
      (l.kv_heads - 1) * l.scale_head_stride + l.scale_v_offset + l.block_tokens();
  return std::max({rows * ElementBytes(l.dtype), scales * 4, blocks * l.block_bytes});
}

TestPool::TestPool(const PagedKvLayout& layout, int64_t blocks, bool poison)
    : memory_(std::make_unique<Memory>(PoolBytes(layout, blocks))) {
  view_.base = memory_->data();
  view_.bytes = memory_->bytes();
  view_.num_blocks = blocks;
  view_.layout = layout;
  for (int64_t b = 0; poison && b < blocks; ++b) PoisonBlock(b);
}

void TestPool::PoisonBlock(int64_t block) {
  const PagedKvLayout& l = layout();
  for (int64_t run = 0; run < int64_t{2} * l.layers * l.kv_heads; ++run) {
    const bool is_v = run % 2 != 0;
    const int64_t head = run / 2 % l.kv_heads;
    const int64_t layer = run / 2 / l.kv_heads;
    for (int64_t slot = 0; slot < l.block_tokens(); ++slot) {
      const int64_t row = l.RowOffset(block, layer, head, is_v, slot);
      Poison(l.dtype, view_.base + row * ElementBytes(l.dtype), l.head_dim);
      if (l.scale_kind != ScaleKind::kPerToken) continue;
      Poison(DType::kF32, view_.base + l.ScaleOffset(block, layer, head, is_v, slot) * 4, 1);
    }
  }
}

void TestPool::FillSlot(int64_t block, int64_t slot, float spread, Random& random) {
  const PagedKvLayout& l = layout();
  if (l.dtype == DType::kI8) spread *= 40.0f;
  for (int64_t run = 0; run < int64_t{2} * l.layers * l.kv_heads; ++run) {
    const bool is_v = run % 2 != 0;
    const int64_t head = run / 2 % l.kv_heads;
    const int64_t layer = run / 2 / l.kv_heads;
    const int64_t row = l.RowOffset(block, layer, head, is_v, slot);
    for (int64_t i = 0; i < l.head_dim; ++i) {
      StoreElement(l.dtype, view_.base, row + i, spread * random.Normal());
    }
    if (l.scale_kind != ScaleKind::kPerToken) continue;
    StoreElement(DType::kF32, view_.base, l.ScaleOffset(block, layer, head, is_v, slot),
                 0.125f + 0.03f * random.Normal());
  }
}

void TestPool::FillBlock(int64_t block, Random& random) {
  for (int64_t slot = 0; slot < layout().block_tokens(); ++slot) {
    FillSlot(block, slot, 1.0f, random);
  }
}

std::vector<std::byte> TestPool::Bytes(int64_t block) const {
  const std::byte* from = view_.base + block * layout().block_bytes;
  return {from, from + layout().content_bytes()};
}

std::vector<int32_t> ShuffledIds(int64_t count, Random& random) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), 0);
  for (size_t i = ids.size(); i > 1; --i) {
    std::swap(ids[i - 1], ids[static_cast<size_t>(random.Below(static_cast<int64_t>(i)))]);
  }
  return ids;
}

}  // namespace quire::kernels::testing
