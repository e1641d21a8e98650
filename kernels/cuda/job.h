// Device memory for the length of one call: host arrays packed into one upload, host tensors
// staged, scratch that is used again once the device is done with it.
#ifndef QUIRE_KERNELS_CUDA_JOB_H_
#define QUIRE_KERNELS_CUDA_JOB_H_

#include <cstring>
#include <span>
#include <vector>

#include "kernels/simt/device.h"
#include "kernels/simt/simt.h"

namespace quire::kernels::QUIRE_SIMT {

// Arrays that go to the device in one copy.
class Pack {
 public:
  // Offset of the array in the uploaded bytes.
  template <typename T>
  size_t Add(const T* data, size_t count) {
    const size_t at = (bytes_.size() + 15) / 16 * 16;
    bytes_.resize(at + count * sizeof(T));
    if (count > 0) std::memcpy(bytes_.data() + at, data, count * sizeof(T));
    return at;
  }

  // As Add, right behind what was added last if that had the same type.
  template <typename T>
  size_t AddMore(const T* data, size_t count) {
    const size_t at = (bytes_.size() + alignof(T) - 1) / alignof(T) * alignof(T);
    bytes_.resize(at + count * sizeof(T));
    if (count > 0) std::memcpy(bytes_.data() + at, data, count * sizeof(T));
    return at;
  }

  template <typename T>
  size_t Add(const std::vector<T>& values) {
    return Add(values.data(), values.size());
  }

  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

template <typename T>
const T* ArrayAt(const std::byte* base, size_t offset) {
  return reinterpret_cast<const T*>(base + offset);
}

// Pieces of device memory, reused when the stream has passed their last use.
class Arena {
 public:
  explicit Arena(Device& device) : device_(device) {}

  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  Result<size_t> Take(size_t bytes);

  std::byte* At(size_t piece) const { return pieces_[piece].memory; }

  // Its users on `stream` have been queued.
  Status GiveBack(const std::vector<size_t>& pieces, StreamId stream);

  // The upload of `pack`, kept: the same tables serve all layers of a step.
  Result<const std::byte*> Upload(const Pack& pack, StreamId stream);

 private:
  struct Piece {
    std::byte* memory;
    size_t bytes;
    bool busy;
  };

  struct Pending {
    EventId event;
    std::vector<size_t> pieces;
  };

  Status Collect();

  Device& device_;
  std::vector<Piece> pieces_;
  std::vector<Pending> pending_;
  std::vector<std::byte> uploaded_;
  std::vector<size_t> uploaded_piece_;  // one or none
  StreamId uploaded_stream_ = kDefaultStream;
};

// One call. The first failure sticks: addresses are null from then on and status() says why.
class Job {
 public:
  Job(Device& device, Arena& arena, StreamId stream)
      : device_(device), arena_(arena), stream_(stream) {}

  // Where kernels find host or device memory; a copy if they cannot reach it or it is not aligned.
  const std::byte* In(const void* data, size_t bytes, size_t alignment = 1);
  // As In, and Finish copies it back. What the kernel does not write stays as it was.
  std::byte* InOut(void* data, size_t bytes, size_t alignment = 1);
  // `memory` if kernels can reach it, else scratch of that size.
  std::byte* Reachable(std::byte* memory, size_t bytes);
  std::byte* Scratch(size_t bytes);
  const std::byte* Upload(const Pack& pack);

  const Status& status() const { return status_; }

  void Fail(const Status& status) { status_ = status; }

  void Zero(std::byte* memory, size_t bytes);
  // Copies results back and, on the default stream, waits for them.
  Status Finish();

  template <typename Args>
  void Launch(void (*kernel)(Args), int64_t ctas, int threads, size_t shared, const Args& args) {
    if (status_.ok()) status_ = device_.Launch(kernel, ctas, threads, shared, stream_, args);
  }

 private:
  struct Back {
    void* to;
    const std::byte* from;
    size_t bytes;
  };

  bool IsUsable(const void* data, size_t bytes, size_t alignment) const;
  void Copy(void* to, const void* from, size_t bytes);

  Device& device_;
  Arena& arena_;
  const StreamId stream_;
  Status status_;
  std::vector<size_t> pieces_;
  std::vector<Back> backs_;
};

}  // namespace quire::kernels::QUIRE_SIMT

#endif  // QUIRE_KERNELS_CUDA_JOB_H_
