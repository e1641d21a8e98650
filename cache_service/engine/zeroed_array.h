// A fixed array of zero bytes whose pages the system provides on first touch, so that the records
// of millions of blocks cost nothing at start.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_ZEROED_ARRAY_H_
#define QUIRE_CACHE_SERVICE_ENGINE_ZEROED_ARRAY_H_

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

namespace quire {

template <typename T>
class ZeroedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  ZeroedArray() = default;

  explicit ZeroedArray(size_t size) : size_(size) {
    if (size == 0) return;
    data_.reset(static_cast<T*>(std::calloc(size, sizeof(T))));
    if (data_ == nullptr) throw std::bad_alloc();
  }

  T& operator[](size_t index) { return data_.get()[index]; }

  const T& operator[](size_t index) const { return data_.get()[index]; }

  T* data() { return data_.get(); }

  const T* data() const { return data_.get(); }

  size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(T* data) const { std::free(data); }
  };

  std::unique_ptr<T, Free> data_;
  size_t size_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_ZEROED_ARRAY_H_
