#include "worker/runtime/shared_reduce.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>

#include "absl/status/status.h"

namespace quire::runtime {
namespace {

constexpr uint32_t kMaxRanks = 16;
// Longer sums go in pieces of this many values.
constexpr size_t kPieceFloats = 64 * 1024;
constexpr int kSpins = 50;
constexpr timespec kLookUp = {.tv_sec = 0, .tv_nsec = 20'000'000};

long Futex(std::atomic<uint32_t>& word, int operation, uint32_t value, const timespec* timeout) {
  return syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation, value, timeout, nullptr,
                 0);
}

size_t Bytes(uint32_t ranks) { return 4096 + ranks * 2 * kPieceFloats * sizeof(float); }

}  // namespace

// The first page of the memory.
struct SharedReduce::Control {
  struct alignas(64) Arrived {
    // Sums to which the rank has given its part.
    std::atomic<uint32_t> count;
  };

  Arrived arrived[kMaxRanks];
  std::atomic<uint32_t> aborted;
};

absl::StatusOr<std::unique_ptr<SharedReduce>> SharedReduce::Create(uint32_t ranks) {
  if (ranks > kMaxRanks) return absl::InvalidArgumentError("at most 16 ranks");
  const int fd = memfd_create("quire-ranks", 0);
  if (fd < 0) return absl::ErrnoToStatus(errno, "cannot make shared memory");
  if (ftruncate(fd, static_cast<off_t>(Bytes(ranks))) != 0) {
    close(fd);
    return absl::ErrnoToStatus(errno, "cannot size shared memory");
  }
  return Open(fd, 0, ranks);
}

absl::StatusOr<std::unique_ptr<SharedReduce>> SharedReduce::Open(int fd, uint32_t rank,
                                                                 uint32_t ranks) {
  std::unique_ptr<SharedReduce> reduce(new SharedReduce(fd, rank, ranks));
  if (absl::Status status = reduce->Map(); !status.ok()) return status;
  return reduce;
}

absl::Status SharedReduce::Map() {
  static_assert(sizeof(Control) <= 4096 && std::atomic<uint32_t>::is_always_lock_free);
  void* memory = mmap(nullptr, Bytes(ranks_), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (memory == MAP_FAILED) return absl::ErrnoToStatus(errno, "cannot map shared memory");
  control_ = static_cast<Control*>(memory);
  return absl::OkStatus();
}

SharedReduce::~SharedReduce() {
  if (control_ != nullptr) munmap(control_, Bytes(ranks_));
  close(fd_);
}

float* SharedReduce::Part(uint32_t rank, uint32_t turn) const {
  auto* first = reinterpret_cast<float*>(reinterpret_cast<std::byte*>(control_) + 4096);
  return first + (rank * 2 + turn) * kPieceFloats;
}

absl::Status SharedReduce::Sum(std::span<float> values) {
  for (size_t at = 0; at < values.size(); at += kPieceFloats) {
    const size_t count = std::min(kPieceFloats, values.size() - at);
    if (absl::Status status = SumPiece(values.subspan(at, count)); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status SharedReduce::SumPiece(std::span<float> values) {
  const uint32_t turn = ++sums_ % 2;
  std::copy(values.begin(), values.end(), Part(rank_, turn));
  std::atomic<uint32_t>& own = control_->arrived[rank_].count;
  own.store(sums_, std::memory_order_release);
  Futex(own, FUTEX_WAKE, INT_MAX, nullptr);
  std::fill(values.begin(), values.end(), 0.0f);
  for (uint32_t rank = 0; rank < ranks_; ++rank) {
    if (absl::Status status = WaitFor(rank, sums_); !status.ok()) return status;
    const float* part = Part(rank, turn);
    for (size_t i = 0; i < values.size(); ++i) values[i] += part[i];
  }
  return absl::OkStatus();
}

// The count may be one ahead: that rank has begun the next sum, in its other place.
absl::Status SharedReduce::WaitFor(uint32_t rank, uint32_t count) {
  std::atomic<uint32_t>& arrived = control_->arrived[rank].count;
  for (int spins = 0;; ++spins) {
    const uint32_t now = arrived.load(std::memory_order_acquire);
    if (static_cast<int32_t>(now - count) >= 0) return absl::OkStatus();
    if (control_->aborted.load(std::memory_order_acquire) != 0) {
      return absl::UnavailableError("another rank failed");
    }
    if (spins < kSpins) {
      sched_yield();
    } else if (Futex(arrived, FUTEX_WAIT, now, &kLookUp) != 0 && errno == ETIMEDOUT &&
               peers_alive_ != nullptr && !peers_alive_()) {
      return absl::UnavailableError("another rank is gone");
    } else if (spins - kSpins >= most_looks_) {
      return absl::UnavailableError("another rank does not answer");
    }
  }
}

void SharedReduce::set_patience(Duration patience) {
  most_looks_ = static_cast<int>(patience / std::chrono::nanoseconds(kLookUp.tv_nsec));
}

void SharedReduce::Abort() { control_->aborted.store(1, std::memory_order_release); }

void SharedReduce::Reset() {
  for (Control::Arrived& arrived : control_->arrived) arrived.count = 0;
  control_->aborted = 0;
  sums_ = 0;
}

}  // namespace quire::runtime
