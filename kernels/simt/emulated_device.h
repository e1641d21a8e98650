// simt.h for the emulator. `line` is the caller's: lanes of a warp must meet in the same call.
#ifndef QUIRE_KERNELS_SIMT_EMULATED_DEVICE_H_
#define QUIRE_KERNELS_SIMT_EMULATED_DEVICE_H_

#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/dtype.h"
#include "kernels/simt/emulator.h"

namespace quire::kernels::emulated {

inline int ThreadIndex() { return Emulator::Current().self().index; }

inline int64_t CtaIndex() { return Emulator::Current().cta(); }

inline int64_t CtaCount() { return Emulator::Current().ctas(); }

inline std::byte* SharedMemory() { return Emulator::Current().shared(); }

inline float AsFloat(uint32_t bits) { return std::bit_cast<float>(bits); }

inline uint32_t AsBits(float value) { return std::bit_cast<uint32_t>(value); }

inline float Max(float a, float b) { return std::fmax(a, b); }

inline float Exp2(float x) { return std::exp2(x); }

inline float Log2(float x) { return std::log2(x); }

inline float Tanh(float x) { return std::tanh(x); }

inline void SyncCta() { Emulator::Current().SyncCta(); }

inline void SyncWarp(int line = __builtin_LINE()) { Emulator::Current().SyncWarp(line); }

inline uint32_t Shuffle(uint32_t value, int lane, int line = __builtin_LINE()) {
  Emulator& emulator = Emulator::Current();
  Exchange& exchange = emulator.Enter(Op::kShuffle, line);
  exchange.word[emulator.self().index % kWarpSize] = value;
  if (emulator.Meet()) emulator.Release();
  return exchange.word[lane % kWarpSize];
}

inline uint32_t ShuffleXor(uint32_t value, int mask, int line = __builtin_LINE()) {
  return Shuffle(value, (ThreadIndex() ^ mask) % kWarpSize, line);
}

inline uint32_t Ballot(bool vote, int line = __builtin_LINE()) {
  Emulator& emulator = Emulator::Current();
  Exchange& exchange = emulator.Enter(Op::kBallot, line);
  exchange.word[emulator.self().index % kWarpSize] = vote ? 1 : 0;
  if (emulator.Meet()) emulator.Release();
  uint32_t votes = 0;
  for (int lane = 0; lane < kWarpSize; ++lane) votes |= exchange.word[lane] << lane;
  return votes;
}

inline void CopyAsync16(void* shared, const void* global, bool exists) {
  Emulator::Current().CopyAsync(shared, global, 16, exists);
}

inline void CopyAsync4(void* shared, const void* global, bool exists) {
  Emulator::Current().CopyAsync(shared, global, 4, exists);
}

inline void CommitCopies() { Emulator::Current().CommitCopies(); }

template <uint32_t kNewestLeft>
void WaitCopies() {
  Emulator::Current().WaitCopies(kNewestLeft);
}

inline Vec16 Load16(const void* from) {
  Emulator::Current().CheckAligned(from, "load");
  Vec16 value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

inline void Store16(void* to, const Vec16& value) {
  Emulator::Current().CheckAligned(to, "store");
  std::memcpy(to, &value, sizeof(value));
}

// `matrices` 8x8 matrices of 16-bit elements; lane 8m + r gave row r of matrix m.
void LoadMatrices(uint32_t* out, const void* row, int matrices, bool transposed, int line);

inline void LoadMatrix2(uint32_t* out, const void* row, int line = __builtin_LINE()) {
  LoadMatrices(out, row, 2, false, line);
}

inline void LoadMatrix4(uint32_t* out, const void* row, int line = __builtin_LINE()) {
  LoadMatrices(out, row, 4, false, line);
}

inline void LoadMatrixTransposed2(uint32_t* out, const void* row, int line = __builtin_LINE()) {
  LoadMatrices(out, row, 2, true, line);
}

inline void LoadMatrixTransposed4(uint32_t* out, const void* row, int line = __builtin_LINE()) {
  LoadMatrices(out, row, 4, true, line);
}

void Mma(float* c, const uint32_t* a, const uint32_t* b, bool is_bf16, int line);

inline void MmaF16(float* c, const uint32_t* a, const uint32_t* b, int line = __builtin_LINE()) {
  Mma(c, a, b, false, line);
}

inline void MmaBf16(float* c, const uint32_t* a, const uint32_t* b, int line = __builtin_LINE()) {
  Mma(c, a, b, true, line);
}

inline uint32_t PackF16(float low, float high) {
  return FloatToFp16(low) | (static_cast<uint32_t>(FloatToFp16(high)) << 16);
}

inline uint32_t PackBf16(float low, float high) {
  return FloatToBf16(low) | (static_cast<uint32_t>(FloatToBf16(high)) << 16);
}

inline float F16ToFloat(uint16_t half) { return Fp16ToFloat(half); }

inline uint32_t E4m3PairToF16(uint32_t pair) {
  return PackF16(E4m3ToFloat(static_cast<uint8_t>(pair)),
                 E4m3ToFloat(static_cast<uint8_t>(pair >> 8)));
}

inline uint32_t I8PairToF16(uint32_t pair) {
  return PackF16(static_cast<float>(static_cast<int8_t>(pair)),
                 static_cast<float>(static_cast<int8_t>(pair >> 8)));
}

// CTAs run one after another.
inline void AtomicAdd(uint64_t* sum, uint64_t value) { *sum += value; }

}  // namespace quire::kernels::emulated

#endif  // QUIRE_KERNELS_SIMT_EMULATED_DEVICE_H_
