// Zeroed rows that stay at their addresses while their number grows.
//
// Most rows lie in one piece that is there from the start, so that finding one is a multiplication;
// what comes later lies in pages. Not thread-safe.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_GROWING_ARRAY_H_
#define QUIRE_CACHE_SERVICE_ENGINE_GROWING_ARRAY_H_

#include <cstddef>
#include <vector>

#include "cache_service/engine/zeroed_array.h"

namespace quire {

// A row is `width` values of T.
template <typename T>
class GrowingArray {
 public:
  explicit GrowingArray(size_t rows, size_t width = 1)
      : first_rows_(rows), width_(width), first_(rows * width) {}

  size_t rows() const { return first_rows_ + pages_.size() * kPageRows; }

  // The rows that lie in one piece.
  size_t first_rows() const { return first_rows_; }

  const T* first() const { return first_.data(); }

  T* first() { return first_.data(); }

  void Grow() { pages_.emplace_back(kPageRows * width_); }

  T* Row(size_t row) {
    return __builtin_expect(row < first_rows_, 1) ? first_.data() + row * width_ : LaterRow(row);
  }

  const T* Row(size_t row) const { return const_cast<GrowingArray*>(this)->Row(row); }

  // Of arrays whose width is 1.
  T& operator[](size_t row) {
    return __builtin_expect(row < first_rows_, 1) ? first_[row] : *LaterRow(row);
  }

  const T& operator[](size_t row) const { return const_cast<GrowingArray&>(*this)[row]; }

 private:
  static constexpr size_t kPageRows = size_t{1} << 16;

  __attribute__((noinline)) T* LaterRow(size_t row) {
    row -= first_rows_;
    return pages_[row / kPageRows].data() + row % kPageRows * width_;
  }

  size_t first_rows_;
  size_t width_;
  ZeroedArray<T> first_;
  std::vector<ZeroedArray<T>> pages_;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_GROWING_ARRAY_H_
