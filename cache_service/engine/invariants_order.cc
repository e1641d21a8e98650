// The lists of the eviction order: every listed block once, in the order of last use.
#include "absl/strings/str_cat.h"
#include "cache_service/engine/invariants.h"

namespace quire {

void InvariantChecker::CheckOrders() {
  const BlockPool& pool = core_.pool_;
  uint64_t placed = 0;
  uint64_t parked = 0;
  for (uint32_t index = 0; index < pool.size(); ++index) {
    const Place place = pool.Get(BlockId{index}).place;
    placed += place == Place::kBand || place == Place::kLate;
    parked += place == Place::kParked;
  }
  uint64_t listed = 0;
  for (WorkerSlot slot = 0; slot < pool.lists_.size(); ++slot) {
    if (pool.lists_[slot] == nullptr) continue;
    const EvictionOrder& order = pool.lists_[slot]->order;
    for (size_t band = 0; band < EvictionOrder::kBands; ++band) {
      const uint64_t count = CheckBand(order.bands_[band], static_cast<uint8_t>(band), slot);
      const bool marked = (order.used_bands_[band / 64] >> (band % 64) & 1) != 0;
      if (marked != (count > 0)) Report(1, std::nullopt, "pool", "a band is marked wrongly");
      listed += count;
    }
  }
  if (listed != placed || parked != pool.parked_) {
    Report(1, std::nullopt, "pool",
           absl::StrCat("lists ", listed, " of ", placed, " blocks to evict; parked ", pool.parked_,
                        " has ", parked));
  }
}

// Returns how many blocks the band has.
uint64_t InvariantChecker::CheckBand(const EvictionOrder::Band& band, uint8_t number,
                                     WorkerSlot slot) {
  const BlockPool& pool = core_.pool_;
  const auto check = [&](uint32_t index, Place place) {
    const Block& block = pool.Get(BlockId{index});
    if (block.place != place || block.band != number || block.place_worker != slot) {
      Report(1, BlockId{index}, "pool", "is in an order that it does not name");
    }
  };
  for (const uint32_t index : band.late) check(index, Place::kLate);
  uint64_t count = band.late.size();
  uint32_t before = BlockPool::kNil;
  for (uint32_t index = band.ends.head; index != BlockPool::kNil;) {
    const Block& block = pool.Get(BlockId{index});
    check(index, Place::kBand);
    if (block.prev != before ||
        (before != BlockPool::kNil && pool.Get(BlockId{before}).last_use > block.last_use)) {
      Report(1, BlockId{index}, "pool", "is out of order");
    }
    if (++count > pool.size()) break;
    before = index;
    index = block.next;
  }
  if (before != band.ends.tail) Report(1, std::nullopt, "pool", "a list does not reach its end");
  return count;
}

}  // namespace quire
