// Sums over the ranks of one worker, in memory that their processes share.
#ifndef QUIRE_WORKER_RUNTIME_SHARED_REDUCE_H_
#define QUIRE_WORKER_RUNTIME_SHARED_REDUCE_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "cache_service/base/clock.h"
#include "worker/model/shard.h"

namespace quire::runtime {

// Each rank writes its part into a place of its own, waits until all have, and adds the parts in
// the order of the ranks. Two places per rank take turns, so that one wait per sum is enough. One
// thread per rank.
class SharedReduce final : public model::AllReduce {
 public:
  // New memory, for rank 0. Its descriptor is inherited by processes started later.
  static absl::StatusOr<std::unique_ptr<SharedReduce>> Create(uint32_t ranks);
  // The same memory in the process of another rank. Takes the descriptor over.
  static absl::StatusOr<std::unique_ptr<SharedReduce>> Open(int fd, uint32_t rank, uint32_t ranks);
  ~SharedReduce() override;
  SharedReduce(const SharedReduce&) = delete;
  SharedReduce& operator=(const SharedReduce&) = delete;

  int fd() const { return fd_; }

  // Asked now and then while another rank is waited for; false ends the wait.
  void set_peers_alive(std::function<bool()> alive) { peers_alive_ = std::move(alive); }

  // How long to wait for one part of another rank; without end if it is not set.
  void set_patience(Duration patience);

  absl::Status Sum(std::span<float> values) override;

  // This rank's launch failed: the others must not wait for it.
  void Abort();
  // As new. No other rank may be using it.
  void Reset();

 private:
  struct Control;

  SharedReduce(int fd, uint32_t rank, uint32_t ranks) : fd_(fd), rank_(rank), ranks_(ranks) {}

  absl::Status Map();
  float* Part(uint32_t rank, uint32_t turn) const;
  absl::Status SumPiece(std::span<float> values);
  absl::Status WaitFor(uint32_t rank, uint32_t count);

  const int fd_;
  const uint32_t rank_;
  const uint32_t ranks_;
  Control* control_ = nullptr;
  uint32_t sums_ = 0;
  std::function<bool()> peers_alive_;
  int most_looks_ = std::numeric_limits<int>::max();
};

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_SHARED_REDUCE_H_
