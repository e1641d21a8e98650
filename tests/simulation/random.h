// Draws of one seed: the same numbers on every machine and library. Not thread-safe.
#ifndef QUIRE_TESTS_SIMULATION_RANDOM_H_
#define QUIRE_TESTS_SIMULATION_RANDOM_H_

#include <cstdint>

namespace quire::simulation {

// SplitMix64's finaliser: every bit of the result depends on every bit of the value.
constexpr uint64_t Mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
  return value ^ (value >> 31);
}

class Random {
 public:
  explicit Random(uint64_t seed) : state_(Mix(seed + 1)) {}

  uint64_t Next() { return Mix(state_ += 0x9E3779B97F4A7C15u); }

  // 0 up to, not including, `bound`, which is at least 1.
  uint32_t Below(uint32_t bound) {
    return static_cast<uint32_t>(((Next() >> 32) * uint64_t{bound}) >> 32);
  }

  // Both ends included.
  uint32_t Between(uint32_t low, uint32_t high) { return low + Below(high - low + 1); }

  // True once in `count` draws; never if `count` is 0.
  bool OneIn(uint32_t count) { return count > 0 && Below(count) == 0; }

 private:
  uint64_t state_;
};

}  // namespace quire::simulation

#endif  // QUIRE_TESTS_SIMULATION_RANDOM_H_
