// Checksums of public blocks and the work still to be done on them.
//
// Computing a checksum reads a whole block, so it happens outside the engine's lock: take a batch,
// compute, bring the results back. A block that was given away meanwhile is forgotten. Not
// thread-safe.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_CONTENT_CHECKS_H_
#define QUIRE_CACHE_SERVICE_ENGINE_CONTENT_CHECKS_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cache_service/engine/engine_observer.h"
#include "cache_service/engine/types.h"

namespace quire {

struct ContentCheck {
  BlockId block = kNoBlock;
  uint32_t group = 0;
  // Tells this life of the block's content from later ones.
  uint64_t serial = 0;
  BlockContents::Checksum computed{};
};

class ContentChecks {
 public:
  // The content of `block` became public: its checksum is wanted.
  void Add(BlockId block, uint32_t group);

  // The content is gone.
  void Forget(BlockId block) { records_.erase(block); }

  // A hit on the block was sampled: its bytes are compared soon, if the checksum is known.
  void Sample(BlockId block);

  bool idle() const { return queue_.empty(); }

  // Queued work, some of it perhaps on content that is gone: never much more than two entries for
  // each block with content, however slowly the work is done.
  size_t queued() const { return queue_.size(); }

  // Up to `most` blocks whose checksums are to be computed.
  std::vector<ContentCheck> Take(size_t most);
  // Every block with a known checksum.
  std::vector<ContentCheck> All() const;

  enum class Outcome { kGone, kStored, kEqual, kDifferent };
  // Stores the first checksum of a block, or compares.
  Outcome Finish(const ContentCheck& check);

 private:
  struct Record {
    uint32_t group = 0;
    uint64_t serial = 0;
    std::optional<BlockContents::Checksum> known;
  };

  ContentCheck CheckOf(BlockId block, const Record& record) const {
    return {block, record.group, record.serial, {}};
  }

  bool IsCurrent(const ContentCheck& check) const;
  // Takes out what waits for content that is gone.
  void DropStale();

  absl::flat_hash_map<BlockId, Record> records_;
  std::deque<ContentCheck> queue_;
  uint64_t next_serial_ = 1;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_CONTENT_CHECKS_H_
