#include "cache_service/base/zeroed_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace quire {
namespace {

constexpr size_t kCacheLine = 64;
constexpr size_t kHugePage = size_t{2} << 20;
// Smaller pieces come from the heap.
constexpr size_t kSmallestMapping = size_t{128} << 10;

size_t RoundUp(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

ZeroedMemory::ZeroedMemory(size_t bytes) {
  if (bytes == 0) return;
  if (bytes >= kSmallestMapping) {
    Map(bytes);
    return;
  }
  data_ = std::aligned_alloc(kCacheLine, RoundUp(bytes, kCacheLine));
  if (data_ == nullptr) throw std::bad_alloc();
  std::memset(data_, 0, bytes);
}

void ZeroedMemory::Map(size_t bytes) {
  // More than asked for, so that a huge page begins inside.
  const bool huge = bytes >= kHugePage;
  mapped_bytes_ = bytes + (huge ? kHugePage : 0);
  void* const mapping = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  mapping_ = data_ = mapping;
  if (!huge) return;
  const auto address = reinterpret_cast<uintptr_t>(mapping);
  data_ = reinterpret_cast<void*>(RoundUp(address, kHugePage));
  // Only whole huge pages, for what is past the end would count as used. A system without them
  // refuses, which changes nothing but speed.
  (void)madvise(data_, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
}

ZeroedMemory::~ZeroedMemory() {
  if (mapping_ == nullptr) {
    std::free(data_);
  } else {
    munmap(mapping_, mapped_bytes_);
  }
}

}  // namespace quire
