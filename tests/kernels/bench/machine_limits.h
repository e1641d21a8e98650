// What this core can do at best, measured beside each kernel: reading memory, and fused
// multiply-adds on registers.
#ifndef QUIRE_TESTS_KERNELS_BENCH_MACHINE_LIMITS_H_
#define QUIRE_TESTS_KERNELS_BENCH_MACHINE_LIMITS_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace quire::kernels::bench {

// Reads `bytes` (a multiple of 4096) once, in order; returns something that depends on all of them.
float ReadStream(const std::byte* data, int64_t bytes);

struct MemoryRun {
  const std::byte* at;
  int64_t bytes;  // a multiple of 512
};

// Reads runs one after the other, with the prefetch of the attention kernels.
float ReadRuns(std::span<const MemoryRun> runs);

// Does `rounds` * FmaPerRound() fp32 multiply-adds on registers.
float MultiplyAdd(int64_t rounds);
int64_t FmaPerRound();

}  // namespace quire::kernels::bench

#endif  // QUIRE_TESTS_KERNELS_BENCH_MACHINE_LIMITS_H_
