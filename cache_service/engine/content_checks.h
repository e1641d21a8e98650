// Checksums of public blocks and the work still to be done on them.
//
// Computing a checksum reads a whole block, so it happens outside the engine's lock: take a batch,
// compute, bring the results back. A block that was given away meanwhile is forgotten. A step that
// publishes many blocks pays for each of them here, so a block costs one small record, which is
// also its place in the queue. Not thread-safe.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_CONTENT_CHECKS_H_
#define QUIRE_CACHE_SERVICE_ENGINE_CONTENT_CHECKS_H_

#include <cstdint>
#include <vector>

#include "cache_service/engine/engine_observer.h"
#include "cache_service/engine/types.h"
#include "cache_service/engine/zeroed_array.h"

namespace quire {

struct ContentCheck {
  BlockId block = kNoBlock;
  uint32_t group = 0;
  // Tells this life of the block's content from later ones.
  uint16_t serial = 0;
  BlockContents::Checksum computed{};
};

class ContentChecks {
 public:
  explicit ContentChecks(uint32_t block_count) : records_(block_count) {}

  // The content of `block` became public: its checksum is wanted.
  void Add(BlockId block);
  // The content is gone.
  void Forget(BlockId block);
  // A hit on the block was sampled: its bytes are compared soon, if the checksum is known.
  void Sample(BlockId block);

  bool idle() const { return queued_ == 0; }

  // Blocks in the queue, each once, some of them perhaps without content by now.
  size_t queued() const { return queued_; }

  // Up to `most` blocks whose checksums are to be computed; their groups are the caller's to fill.
  std::vector<ContentCheck> Take(size_t most);
  // Every block with a known checksum.
  std::vector<ContentCheck> All() const;

  enum class Outcome { kGone, kStored, kEqual, kDifferent };
  // Stores the first checksum of a block, or compares.
  Outcome Finish(const ContentCheck& check);

 private:
  // All zero: no content.
  struct Record {
    BlockContents::Checksum known;
    uint32_t next_queued;
    uint16_t serial;
    bool has_content : 1;
    bool is_known : 1;
    bool is_queued : 1;
  };

  static_assert(sizeof(Record) == 24);

  void Enqueue(BlockId block);

  ZeroedArray<Record> records_;
  uint32_t first_queued_ = 0;
  uint32_t last_queued_ = 0;
  size_t queued_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_CONTENT_CHECKS_H_
