// Blocks on the heap, good for running the model over paged memory without a server.
//
// Memory starts as NaN, so that a read of a slot nobody wrote shows in the results; blocks are
// handed out in a shuffled order, so that ids never coincide with positions.
#ifndef QUIRE_TESTS_WORKER_MODEL_HEAP_POOL_H_
#define QUIRE_TESTS_WORKER_MODEL_HEAP_POOL_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/kv_layout.h"
#include "worker/model/model_config.h"
#include "worker/model/paged_kv.h"

namespace quire::model {

class HeapPool {
 public:
  HeapPool(const ModelConfig& config, std::vector<PagedGroup> groups, uint32_t block_tokens,
           uint32_t block_count)
      : groups_(std::move(groups)), block_tokens_(block_tokens), block_count_(block_count) {
    size_t layers = 0;
    for (const PagedGroup& group : groups_) layers = std::max(layers, group.layers.size());
    block_bytes_ = static_cast<uint64_t>(
        kernels::MakeLayout({.dtype = config.kv_dtype,
                             .layers = static_cast<int32_t>(layers),
                             .kv_heads = config.kv_heads,
                             .head_dim = config.head_dim,
                             .block_tokens = static_cast<int32_t>(block_tokens)})
            ->block_bytes);
    const size_t bytes = block_bytes_ * block_count;
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(4096, bytes)));
    std::memset(memory_.get(), 0xFF, bytes);
    free_.resize(block_count);
    std::iota(free_.begin(), free_.end(), 0);
    std::shuffle(free_.begin(), free_.end(), std::mt19937(7));
  }

  PagedPool paged() const {
    return {memory_.get(), block_count_, block_bytes_, block_tokens_, groups_};
  }

  int32_t Take() {
    const int32_t block = free_.back();
    free_.pop_back();
    return block;
  }

  // Tables (one per group) with slots for `tokens` tokens.
  std::vector<std::vector<int32_t>> NewTables(uint32_t tokens) {
    std::vector<std::vector<int32_t>> tables(groups_.size());
    for (auto& table : tables) {
      while (table.size() * block_tokens_ < tokens) table.push_back(Take());
    }
    return tables;
  }

  std::byte* block(int32_t id) { return memory_.get() + static_cast<uint64_t>(id) * block_bytes_; }

  uint64_t block_bytes() const { return block_bytes_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  std::vector<PagedGroup> groups_;
  uint32_t block_tokens_;
  uint32_t block_count_;
  uint64_t block_bytes_ = 0;
  std::unique_ptr<std::byte, Free> memory_;
  std::vector<int32_t> free_;
};

inline std::unique_ptr<kernels::Backend> CpuKernels() { return *MakeKernels({}); }

inline SequenceTables Spans(const std::vector<std::vector<int32_t>>& tables) {
  return SequenceTables(tables.begin(), tables.end());
}

// One group of all layers, or one full group and one window group.
inline std::vector<PagedGroup> GroupsOf(const ModelConfig& config) {
  std::vector<PagedGroup> groups;
  for (int32_t layer = 0; layer < config.layers; ++layer) {
    const uint32_t window = config.window(layer);
    auto group = std::find_if(groups.begin(), groups.end(), [window](const PagedGroup& candidate) {
      return candidate.window_tokens == window;
    });
    if (group == groups.end()) group = groups.insert(groups.end(), {window, {}});
    group->layers.push_back(static_cast<uint32_t>(layer));
  }
  return groups;
}

inline std::vector<TokenId> RandomTokens(const ModelConfig& config, size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<TokenId> tokens(count);
  std::uniform_int_distribution<TokenId> any(0, static_cast<TokenId>(config.vocabulary) - 1);
  for (TokenId& token : tokens) token = any(random);
  return tokens;
}

}  // namespace quire::model

#endif  // QUIRE_TESTS_WORKER_MODEL_HEAP_POOL_H_
