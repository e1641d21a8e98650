// Tells a repeated step from another one of the same number.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_STEP_IDENTITY_H_
#define QUIRE_CACHE_SERVICE_ENGINE_STEP_IDENTITY_H_

#include <cstdint>

#include "cache_service/engine/step.h"

namespace quire {

// Of the operations, not of the counters; equal within this process for equal operations.
uint64_t Fingerprint(const StepParams& params);

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_STEP_IDENTITY_H_
