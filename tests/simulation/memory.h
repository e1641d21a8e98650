// Pool memory of one epoch: a region per rank whose slots hold contents instead of keys and values,
// the lease words of the control page, and the lock bytes of who maps it. Not thread-safe.
#ifndef QUIRE_TESTS_SIMULATION_MEMORY_H_
#define QUIRE_TESTS_SIMULATION_MEMORY_H_

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "cache_service/engine/engine_observer.h"
#include "cache_service/engine/engine_options.h"
#include "cache_service/engine/step.h"
#include "tests/simulation/content.h"
#include "tests/simulation/random.h"

namespace quire::simulation {

// What was written, and for a message who wrote it.
struct Slot {
  ContentId content = 0;
  uint64_t sequence = 0;
  uint32_t process = 0;
  uint32_t position = 0;
  TokenId token = 0;
};

class PoolMemory final : public EngineObserver, public MappingEvidence, public BlockContents {
 public:
  PoolMemory(const EngineOptions& options, uint32_t ranks)
      : epoch_(options.epoch), block_tokens_(options.block_tokens), ranks_(ranks) {
    for (auto& region : ranks_) region.resize(size_t{options.block_count} * block_tokens_);
  }

  Epoch epoch() const { return epoch_; }

  uint32_t ranks() const { return static_cast<uint32_t>(ranks_.size()); }

  Slot& At(uint32_t rank, BlockId block, uint32_t slot) {
    return ranks_[rank][size_t{Index(block)} * block_tokens_ + slot];
  }

  void Copy(uint32_t rank, const CopyOrder& order) {
    for (uint32_t i = 0; i < order.tokens; ++i) {
      At(rank, order.destination, i) = At(rank, order.source, i);
    }
  }

  // --- Lease words ---
  bool IsRevoked(uint64_t lease_number) const { return revoked_.contains(lease_number); }

  void OnLeaseEnded(uint64_t lease_number) override { revoked_.insert(lease_number); }

  // The server that made the file has ended, and the file is unlinked: it cannot be mapped any
  // more.
  void Unlink() { unlinked_ = true; }

  bool unlinked() const { return unlinked_; }

  // --- Lock bytes: one a rank ---
  void Map(uint64_t lease_number) { ++mapped_[lease_number]; }

  void Unmap(uint64_t lease_number) {
    if (--mapped_[lease_number] == 0) mapped_.erase(lease_number);
  }

  bool IsMapped(uint64_t lease_number) override {
    const auto found = mapped_.find(lease_number);
    return found != mapped_.end() && found->second == ranks();
  }

  bool IsGone(uint64_t lease_number) override { return !mapped_.contains(lease_number); }

  // --- The server reads whole blocks ---
  // Wrongly one in so many times.
  void Misread(uint32_t one_in, Random* random) {
    misread_ = one_in;
    random_ = random;
  }

  Checksum ChecksumOf(BlockId block, uint32_t /*group*/) override {
    Checksum sum;
    if (misread_ > 0 && random_->OneIn(misread_)) sum.low = 1;
    for (uint32_t rank = 0; rank < ranks(); ++rank) {
      for (uint32_t i = 0; i < block_tokens_; ++i) {
        sum.low = Mix(sum.low + At(rank, block, i).content);
      }
    }
    return sum;
  }

 private:
  const Epoch epoch_;
  const uint32_t block_tokens_;
  std::vector<std::vector<Slot>> ranks_;
  bool unlinked_ = false;
  uint32_t misread_ = 0;
  Random* random_ = nullptr;
  std::set<uint64_t> revoked_;
  std::map<uint64_t, uint32_t> mapped_;
};

}  // namespace quire::simulation

#endif  // QUIRE_TESTS_SIMULATION_MEMORY_H_
