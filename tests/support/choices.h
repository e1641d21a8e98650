// Where a random test takes its decisions from: a generator, a recorded list or bytes.
#ifndef QUIRE_TESTS_SUPPORT_CHOICES_H_
#define QUIRE_TESTS_SUPPORT_CHOICES_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace quire::testing {

class Choices {
 public:
  virtual ~Choices() = default;
  // A number in [0, bound); bound is at least 1.
  virtual uint32_t Next(uint32_t bound) = 0;

  // True once in `n` times; false when the choices have run out.
  bool OneIn(uint32_t n) { return Next(n) == n - 1; }

  // A number in [low, high].
  uint32_t Between(uint32_t low, uint32_t high) { return low + Next(high - low + 1); }
};

// Draws from a seed and remembers what it drew.
class RandomChoices final : public Choices {
 public:
  explicit RandomChoices(uint64_t seed) : random_(seed) {}

  uint32_t Next(uint32_t bound) override {
    drawn_.push_back(static_cast<uint32_t>(random_() % bound));
    return drawn_.back();
  }

  std::vector<uint32_t> TakeDrawn() { return std::exchange(drawn_, {}); }

 private:
  std::mt19937_64 random_;
  std::vector<uint32_t> drawn_;
};

// Repeats a list, then gives zeros.
class ReplayChoices final : public Choices {
 public:
  explicit ReplayChoices(const std::vector<uint32_t>& drawn) : drawn_(drawn) {}

  uint32_t Next(uint32_t bound) override {
    return next_ < drawn_.size() ? drawn_[next_++] % bound : 0;
  }

 private:
  const std::vector<uint32_t>& drawn_;
  size_t next_ = 0;
};

// Reads bytes, one per choice or two for wide bounds, then gives zeros.
class ByteChoices final : public Choices {
 public:
  explicit ByteChoices(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  uint32_t Next(uint32_t bound) override {
    const uint32_t low = NextByte();
    return (bound > 256 ? low + 256 * NextByte() : low) % bound;
  }

  bool empty() const { return bytes_.empty(); }

 private:
  uint32_t NextByte() {
    if (bytes_.empty()) return 0;
    const uint32_t byte = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return byte;
  }

  std::span<const uint8_t> bytes_;
};

}  // namespace quire::testing

#endif  // QUIRE_TESTS_SUPPORT_CHOICES_H_
