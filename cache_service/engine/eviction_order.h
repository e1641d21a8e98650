// Order in which hold-free blocks are evicted: dead ones first, then by priority band, then by last
// use.
//
// Blocks mostly become idle in the order of their last use, so a band is a linked list that is
// appended to in O(1). What arrives out of order (expired retention, steps of several workers that
// complete late) is placed by a short walk from either end, or else in a heap beside the list. The
// next victim is the older of list head and heap top: O(1), or O(log n) of the heap. Nothing scans.
//
// Not thread-safe; the links live in the Block records.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_EVICTION_ORDER_H_
#define QUIRE_CACHE_SERVICE_ENGINE_EVICTION_ORDER_H_

#include <array>
#include <cstdint>
#include <vector>

#include "cache_service/engine/block.h"
#include "cache_service/engine/journal.h"
#include "cache_service/engine/types.h"

namespace quire {

class EvictionOrder {
 public:
  // Bands: 0 dead, 1 + priority otherwise.
  static constexpr size_t kBands = 102;

  EvictionOrder(Block* blocks, Journal* journal) : blocks_(blocks), journal_(journal) {}

  static uint8_t BandOf(const Block& block) {
    return block.Has(kDeadFlag) ? uint8_t{0} : static_cast<uint8_t>(1 + block.priority);
  }

  // Links `block` by its band and last use; sets place and band.
  void Insert(BlockId block);
  void Remove(BlockId block);
  // As Insert, of a block whose last use is later than that of all listed ones. Only while no
  // journal runs, as the next.
  void Append(uint32_t index);
  // Unlinks what lies from `front` to `back` in the list of one band; places stay as they are.
  void RemoveRun(uint32_t front, uint32_t back);

  // The front of the first band, if nothing of the band is in its heap; else kNoBlock.
  BlockId ListedFront() const;
  // What lies before `front` in the list of its band leaves it; kNil: all. Only while no journal
  // runs; places stay as they are.
  void CutBefore(uint8_t band, uint32_t front);

  // Links what RemoveRun took out of another order behind all of its band; false: some of that is
  // later.
  bool AppendRun(uint32_t front, uint32_t back);

  // First in the order, or kNoBlock.
  BlockId First() const;

  bool empty() const { return used_bands_[0] == 0 && used_bands_[1] == 0; }

  // True if `a` goes before `b`.
  static bool Before(const Block& a, const Block& b) {
    const uint8_t band_a = BandOf(a);
    const uint8_t band_b = BandOf(b);
    return band_a != band_b ? band_a < band_b : a.last_use < b.last_use;
  }

 private:
  friend class InvariantChecker;
  static constexpr uint32_t kNil = 0xFFFFFFFFu;

  struct Ends {
    uint32_t head = kNil;
    uint32_t tail = kNil;
  };

  struct Band {
    Ends ends;
    std::vector<uint32_t> late;
  };

  const Band* FirstBand() const;
  Block& Mut(uint32_t index);
  void LinkAfter(Band& band, uint32_t index, uint32_t after);
  bool InsertNearEnds(Band& band, uint32_t index);
  void HeapInsert(Band& band, uint32_t index);
  void HeapRemove(Band& band, uint32_t position);
  void HeapPlace(Band& band, uint32_t position, uint32_t index);
  void SiftUp(Band& band, uint32_t position);
  void SiftDown(Band& band, uint32_t position);
  void MarkUsed(size_t band);

  Block* blocks_;
  Journal* journal_;
  std::array<Band, kBands> bands_;
  std::array<uint64_t, 2> used_bands_{};
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_EVICTION_ORDER_H_
