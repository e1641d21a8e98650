#include "cache_service/base/memory_reserve.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <new>

namespace quire {
namespace {

// The handler of `new` takes no argument, so these belong to the process.
size_t reserve_bytes = 0;
std::atomic<void*> reserve{nullptr};
std::atomic<uint64_t> times_given_up{0};

// Never touched, so that it costs no memory. Without MAP_NORESERVE, so that it counts.
bool Take() {
  void* const taken =
      mmap(nullptr, reserve_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (taken == MAP_FAILED) return false;
  void* none = nullptr;
  if (!reserve.compare_exchange_strong(none, taken)) munmap(taken, reserve_bytes);
  return true;
}

// Each thread tries once more after each time, whoever gave it up.
void GiveUp() {
  thread_local uint64_t seen = 0;
  if (void* const given = reserve.exchange(nullptr); given != nullptr) {
    munmap(given, reserve_bytes);
    ++times_given_up;
  } else if (seen == times_given_up) {
    throw std::bad_alloc();
  }
  seen = times_given_up;
}

}  // namespace

bool KeepMemoryReserve(size_t bytes) {
  reserve_bytes = bytes;
  if (!Take()) return false;
  std::set_new_handler(GiveUp);
  return true;
}

bool HasMemoryReserve() {
  return reserve_bytes == 0 || reserve.load(std::memory_order_relaxed) != nullptr || Take();
}

}  // namespace quire
