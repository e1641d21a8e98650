// A fixed array of zero bytes that begins at a cache line; see ZeroedMemory.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_ZEROED_ARRAY_H_
#define QUIRE_CACHE_SERVICE_ENGINE_ZEROED_ARRAY_H_

#include <cstddef>
#include <type_traits>

#include "cache_service/base/zeroed_memory.h"

namespace quire {

template <typename T>
class ZeroedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  ZeroedArray() = default;

  explicit ZeroedArray(size_t size) : memory_(size * sizeof(T)), size_(size) {}

  T& operator[](size_t index) { return data()[index]; }

  const T& operator[](size_t index) const { return data()[index]; }

  T* data() { return static_cast<T*>(memory_.data()); }

  const T* data() const { return static_cast<const T*>(memory_.data()); }

  size_t size() const { return size_; }

 private:
  ZeroedMemory memory_;
  size_t size_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_ZEROED_ARRAY_H_
