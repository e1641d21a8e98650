// Pressure in single blocks: makes the pool evict one block at a time.
#ifndef QUIRE_TESTS_CONFORMANCE_PRESSURE_H_
#define QUIRE_TESTS_CONFORMANCE_PRESSURE_H_

#include <array>
#include <cstdint>

#include "gtest/gtest.h"
#include "tests/support/scenario.h"

namespace quire::testing {

// A sequence that grows at others' cost and never commits.
class Pressure {
 public:
  static constexpr SequenceHandle kHandle = 1'000'000;

  Pressure(Story& story, Worker& worker) : story_(story), worker_(worker) {}

  // Takes every free block.
  void TakeFree() {
    while (story_.Blocks().free > 0) TakeOne();
  }

  // One block more; without free blocks it evicts one.
  void TakeOne() {
    if (!worker_.tables().Has(kHandle)) {
      worker_.Begin(kHandle, Text(4000, 1));
      return;
    }
    const auto blocks = static_cast<uint32_t>(worker_.Table(kHandle).size());
    worker_.Extend(kHandle, (blocks + 1) * story_.driver().options().block_tokens);
  }

  // Evicts one block and returns the tens of its priority at that time.
  int EvictOne() {
    TakeFree();
    const auto before = CountsByBand();
    TakeOne();
    const auto after = CountsByBand();
    int band = -1;
    for (int i = 0; i < kPriorityBands; ++i) {
      const auto index = static_cast<size_t>(i);
      if (after[index] == before[index]) continue;
      EXPECT_EQ(after[index], before[index] + 1);
      EXPECT_EQ(band, -1) << "more than one block was evicted";
      band = i;
    }
    EXPECT_NE(band, -1) << "no block was evicted";
    return band;
  }

 private:
  std::array<uint64_t, kPriorityBands> CountsByBand() {
    std::array<uint64_t, kPriorityBands> sum{};
    for (const auto& bands : story_.driver().Stats().counters.blocks_evicted) {
      for (size_t i = 0; i < bands.size(); ++i) sum[i] += bands[i];
    }
    return sum;
  }

  Story& story_;
  Worker& worker_;
};

}  // namespace quire::testing

#endif  // QUIRE_TESTS_CONFORMANCE_PRESSURE_H_
