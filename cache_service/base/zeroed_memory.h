// Zero bytes for large tables.
#ifndef QUIRE_CACHE_SERVICE_BASE_ZEROED_MEMORY_H_
#define QUIRE_CACHE_SERVICE_BASE_ZEROED_MEMORY_H_

#include <cstddef>
#include <utility>

namespace quire {

// Owns `bytes` zero bytes that begin at a cache line. The system provides the pages of a large
// piece on first touch, so that the tables of millions of blocks cost nothing at start; and as huge
// pages where it can, for records that are visited in no order need one address translation each.
class ZeroedMemory {
 public:
  ZeroedMemory() = default;
  // Throws std::bad_alloc.
  explicit ZeroedMemory(size_t bytes);

  ZeroedMemory(ZeroedMemory&& other) noexcept { *this = std::move(other); }

  ZeroedMemory& operator=(ZeroedMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(mapping_, other.mapping_);
    std::swap(mapped_bytes_, other.mapped_bytes_);
    return *this;
  }

  ~ZeroedMemory();

  // Null if there are no bytes.
  void* data() const { return data_; }

 private:
  void Map(size_t bytes);

  void* data_ = nullptr;
  // Null: from the heap.
  void* mapping_ = nullptr;
  size_t mapped_bytes_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_BASE_ZEROED_MEMORY_H_
