// A poisoned pool with sequences at shuffled ids: every slot that no test owns
// holds NaN, every table entry that nothing may read is "no block".
#ifndef QUIRE_TESTS_KERNELS_TESTING_POOL_FIXTURE_H_
#define QUIRE_TESTS_KERNELS_TESTING_POOL_FIXTURE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/backend.h"

namespace quire::kernels::testing {

// Small, fast, repeatable.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 2 + 1) {}

  uint64_t Next();

  // 0..limit - 1.
  int64_t Below(int64_t limit) {
    return static_cast<int64_t>(Next() % static_cast<uint64_t>(limit));
  }

  // About normal with mean 0 and deviation 1, within +-3.5.
  float Normal();

 private:
  uint64_t state_;
};

// Page-aligned bytes; pages are touched only when used.
class Memory {
 public:
  explicit Memory(int64_t bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::byte* data() { return data_; }

  int64_t bytes() const { return bytes_; }

 private:
  std::byte* data_;
  int64_t bytes_;
};

// Element that reads as NaN (int8: -128, with NaN scales).
void Poison(DType dtype, void* data, int64_t elements);
// True for the bit pattern that Poison writes.
bool IsPoison(DType dtype, const void* data, int64_t element);

// A layout that must be valid.
PagedKvLayout Layout(const LayoutParams& params);

// A pool of `blocks` blocks, all poisoned.
class TestPool {
 public:
  TestPool(const PagedKvLayout& layout, int64_t blocks, bool poison = true);

  const KvPoolView& view() const { return view_; }

  const PagedKvLayout& layout() const { return view_.layout; }

  void PoisonBlock(int64_t block);

  // Normal values (times `spread`) in every row of a slot, all layers, with
  // scales near 1/8.
  void FillSlot(int64_t block, int64_t slot, float spread, Random& random);
  void FillBlock(int64_t block, Random& random);

  std::vector<std::byte> Bytes(int64_t block) const;

 private:
  std::unique_ptr<Memory> memory_;
  KvPoolView view_;
};

// Bytes that a pool of these strides needs.
int64_t PoolBytes(const PagedKvLayout& layout, int64_t blocks);

std::vector<int32_t> ShuffledIds(int64_t count, Random& random);

}  // namespace quire::kernels::testing

#endif  // QUIRE_TESTS_KERNELS_TESTING_POOL_FIXTURE_H_
