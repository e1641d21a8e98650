// Bytes as a list of operations on the engine, checked against the naive model after each.
#ifndef QUIRE_TESTS_FUZZ_ENGINE_BYTES_H_
#define QUIRE_TESTS_FUZZ_ENGINE_BYTES_H_

#include <cstdint>
#include <span>
#include <string>

#include "tests/support/choices.h"
#include "tests/support/model_run.h"

namespace quire::testing {

// The kind of pool that the first bytes choose.
ModelRunOptions PoolOf(Choices& choices);

// The first bytes choose the pool, the rest the calls. Returns what differs between engine and
// model with the calls that led there, or "".
std::string RunEngineBytes(std::span<const uint8_t> bytes);

}  // namespace quire::testing

#endif  // QUIRE_TESTS_FUZZ_ENGINE_BYTES_H_
