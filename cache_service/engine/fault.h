// Faults that break one rule of the engine each, to show that the simulation notices.
//
// In the engine as shipped there is no way to switch one on, and asking costs nothing. Only a build
// with QUIRE_ENGINE_FAULTS (the simulation's) knows which fault its thread has chosen.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_FAULT_H_
#define QUIRE_CACHE_SERVICE_ENGINE_FAULT_H_

#include <cstdint>

namespace quire {

enum class Fault : uint8_t {
  kNone,
  // P8: a released block is open to all at once.
  kReleaseUnfenced,
  // P8: only the worker that lets go last is waited for.
  kOnlyLastHolderFenced,
  // P5: content of incomplete steps is found by other workers.
  kPendingShown,
  // P6: a duplicate is remapped to content that another worker has not completed.
  kRemapOntoPending,
  // P2: one stored answer for all repeats.
  kOneAnswerStored,
  // P1: an operation starts from any length.
  kStartUnchecked,
  // P11: a quarantine ends by the clock.
  kQuarantineByTime,
  // P11: what unreported copies write is not in the write set.
  kCopiesNotQuarantined,
  // E7: blocks leave the window by length, computed or not.
  kWindowExitByLength,
  // P10: blocks that claims promise are given away.
  kClaimNotCounted,
  // P9: a fork's parent shares its last block and loses what it wrote ahead.
  kForkDropsAhead,
};

#ifdef QUIRE_ENGINE_FAULTS
inline constinit thread_local Fault injected_fault = Fault::kNone;

inline bool Injected(Fault fault) { return injected_fault == fault; }
#else
constexpr bool Injected(Fault /*fault*/) { return false; }
#endif

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_FAULT_H_
