// Turns what the standard library may throw (no memory, no thread) into a status.
#ifndef QUIRE_KERNELS_GUARD_H_
#define QUIRE_KERNELS_GUARD_H_

#include <exception>
#include <string_view>

#include "kernels/status.h"

namespace quire::kernels {

// Runs `body`, which returns a Status or a Result.
template <typename Body>
auto NoThrow(std::string_view call, Body body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::exception& error) {
    return Status(StatusCode::kInternal, call, error.what());
  }
}

}  // namespace quire::kernels

#endif  // QUIRE_KERNELS_GUARD_H_
