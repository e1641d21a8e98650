// The engine's deliberate faults by name. Needs an engine built with QUIRE_ENGINE_FAULTS.
#ifndef QUIRE_TESTS_SIMULATION_FAULTS_H_
#define QUIRE_TESTS_SIMULATION_FAULTS_H_

#include <array>
#include <optional>
#include <string_view>

#include "cache_service/engine/fault.h"

namespace quire::simulation {

struct NamedFault {
  std::string_view name;
  Fault fault;
};

inline constexpr std::array kFaults = {
    NamedFault{"release-unfenced", Fault::kReleaseUnfenced},
    NamedFault{"only-last-holder-fenced", Fault::kOnlyLastHolderFenced},
    NamedFault{"pending-shown", Fault::kPendingShown},
    NamedFault{"remap-onto-pending", Fault::kRemapOntoPending},
    NamedFault{"one-answer-stored", Fault::kOneAnswerStored},
    NamedFault{"start-unchecked", Fault::kStartUnchecked},
    NamedFault{"quarantine-by-time", Fault::kQuarantineByTime},
    NamedFault{"copies-not-quarantined", Fault::kCopiesNotQuarantined},
    NamedFault{"window-exit-by-length", Fault::kWindowExitByLength},
    NamedFault{"claim-not-counted", Fault::kClaimNotCounted},
    NamedFault{"fork-drops-ahead", Fault::kForkDropsAhead},
};

inline std::optional<Fault> FaultOf(std::string_view name) {
  if (name == "none") return Fault::kNone;
  for (const NamedFault& named : kFaults) {
    if (named.name == name) return named.fault;
  }
  return std::nullopt;
}

}  // namespace quire::simulation

#endif  // QUIRE_TESTS_SIMULATION_FAULTS_H_
