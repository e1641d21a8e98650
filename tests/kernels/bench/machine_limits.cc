#include "tests/kernels/bench/machine_limits.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/kernels/bench/machine_limits.cc"
#include "hwy/foreach_target.h"
// After foreach_target:
#include "hwy/highway.h"
#include "kernels/cpu/simd-inl.h"
#include "kernels/cpu/tile.h"

HWY_BEFORE_NAMESPACE();

namespace quire::kernels::cpu {
namespace HWY_NAMESPACE {
namespace {

float SumAll(const VF (&sums)[8]) {
  VF all = sums[0];
  QUIRE_UNROLL for (int j = 1; j < 8; ++j) all = hn::Add(all, sums[j]);
  return hn::GetLane(hn::SumOfLanes(F32(), all));
}

float ReadStreamForTarget(const std::byte* data, int64_t bytes) {
  const F32 d;
  VF sums[8];
  QUIRE_UNROLL for (int j = 0; j < 8; ++j) sums[j] = hn::Zero(d);
  const auto* floats = reinterpret_cast<const float*>(data);
  const auto count = static_cast<size_t>(bytes) / sizeof(float);
  for (size_t i = 0; i < count; i += 8 * kLanes) {
    QUIRE_UNROLL for (int j = 0; j < 8; ++j) {
      __builtin_prefetch(floats + i + VectorAt(j) + 1024, 0, 2);
      sums[j] = hn::Add(sums[j], hn::LoadU(d, floats + i + VectorAt(j)));
    }
  }
  return SumAll(sums);
}

float ReadRunsForTarget(const bench::MemoryRun* runs, size_t count) {
  const F32 d;
  PrefetchCursor ahead;
  ahead.Reserve(count);
  for (size_t i = 0; i < count; ++i) ahead.Add(runs[i].at, runs[i].bytes);
  ahead.Advance(PrefetchCursor::kDistance);
  VF sums[8];
  QUIRE_UNROLL for (int j = 0; j < 8; ++j) sums[j] = hn::Zero(d);
  for (size_t i = 0; i < count; ++i) {
    const auto* floats = reinterpret_cast<const float*>(runs[i].at);
    const auto* end = floats + static_cast<size_t>(runs[i].bytes) / sizeof(float);
    for (; floats < end; floats += 8 * kLanes) {
      ahead.Advance(8 * kLanes * sizeof(float));
      QUIRE_UNROLL for (int j = 0; j < 8; ++j) {
        sums[j] = hn::Add(sums[j], hn::LoadU(d, floats + VectorAt(j)));
      }
    }
  }
  return SumAll(sums);
}

float MultiplyAddForTarget(int64_t rounds) {
  const F32 d;
  VF sums[kAccumulators];
  QUIRE_UNROLL for (int j = 0; j < kAccumulators; ++j) sums[j] = hn::Iota(d, static_cast<float>(j));
  VF factor = hn::Set(d, 0.999f);
  const VF step = hn::Set(d, 0.001f);
  for (int64_t r = 0; r < rounds; ++r) {
    QUIRE_UNROLL for (int j = 0; j < kAccumulators; ++j) {
      sums[j] = hn::MulAdd(sums[j], factor, step);
    }
  }
  VF all = sums[0];
  QUIRE_UNROLL for (int j = 1; j < kAccumulators; ++j) all = hn::Add(all, sums[j]);
  return hn::GetLane(hn::SumOfLanes(d, all));
}

int64_t FmaPerRoundForTarget() { return kAccumulators * static_cast<int64_t>(kLanes); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace quire::kernels::cpu

HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire::kernels::cpu {
HWY_EXPORT(ReadStreamForTarget);
HWY_EXPORT(ReadRunsForTarget);
HWY_EXPORT(MultiplyAddForTarget);
HWY_EXPORT(FmaPerRoundForTarget);

float DispatchReadStream(const std::byte* data, int64_t bytes);
float DispatchReadRuns(const bench::MemoryRun* runs, size_t count);
float DispatchMultiplyAdd(int64_t rounds);
int64_t DispatchFmaPerRound();

float DispatchReadStream(const std::byte* data, int64_t bytes) {
  return HWY_DYNAMIC_DISPATCH(ReadStreamForTarget)(data, bytes);
}

float DispatchReadRuns(const bench::MemoryRun* runs, size_t count) {
  return HWY_DYNAMIC_DISPATCH(ReadRunsForTarget)(runs, count);
}

float DispatchMultiplyAdd(int64_t rounds) {
  return HWY_DYNAMIC_DISPATCH(MultiplyAddForTarget)(rounds);
}

int64_t DispatchFmaPerRound() { return HWY_DYNAMIC_DISPATCH(FmaPerRoundForTarget)(); }
}  // namespace quire::kernels::cpu

namespace quire::kernels::bench {

float ReadStream(const std::byte* data, int64_t bytes) {
  return cpu::DispatchReadStream(data, bytes);
}

float ReadRuns(std::span<const MemoryRun> runs) {
  return cpu::DispatchReadRuns(runs.data(), runs.size());
}

float MultiplyAdd(int64_t rounds) { return cpu::DispatchMultiplyAdd(rounds); }

int64_t FmaPerRound() { return cpu::DispatchFmaPerRound(); }

}  // namespace quire::kernels::bench
#endif  // HWY_ONCE
