#include "cache_service/engine/eviction_order.h"

#include <bit>

namespace quire {
namespace {

// Steps walked from either end of a band before the heap takes an out-of-order block.
constexpr int kWalk = 8;

}  // namespace

Block& EvictionOrder::Mut(uint32_t index) {
  journal_->Save(blocks_[index]);
  return blocks_[index];
}

void EvictionOrder::MarkUsed(size_t band) {
  const bool used = bands_[band].ends.head != kNil || !bands_[band].late.empty();
  uint64_t& word = used_bands_[band / 64];
  const uint64_t bit = uint64_t{1} << (band % 64);
  if (((word & bit) != 0) == used) return;
  journal_->Save(word);
  word ^= bit;
}

void EvictionOrder::Insert(BlockId block) {
  const uint32_t index = Index(block);
  Block& record = Mut(index);
  record.band = BandOf(record);
  record.place = Place::kBand;
  Band& band = bands_[record.band];
  if (!InsertNearEnds(band, index)) HeapInsert(band, index);
  MarkUsed(record.band);
}

bool EvictionOrder::InsertNearEnds(Band& band, uint32_t index) {
  const uint64_t last_use = blocks_[index].last_use;
  uint32_t after = band.ends.tail;
  for (int i = 0; i < kWalk; ++i) {
    if (after == kNil || blocks_[after].last_use <= last_use) {
      LinkAfter(band, index, after);
      return true;
    }
    after = blocks_[after].prev;
  }
  uint32_t before = band.ends.head;
  for (int i = 0; i < kWalk; ++i) {
    if (blocks_[before].last_use > last_use) {
      LinkAfter(band, index, blocks_[before].prev);
      return true;
    }
    before = blocks_[before].next;
  }
  return false;
}

// `after` kNil: at the head.
void EvictionOrder::LinkAfter(Band& band, uint32_t index, uint32_t after) {
  journal_->Save(band.ends);
  Block& record = Mut(index);
  record.prev = after;
  record.next = after == kNil ? band.ends.head : blocks_[after].next;
  if (after == kNil) {
    band.ends.head = index;
  } else {
    Mut(after).next = index;
  }
  if (record.next == kNil) {
    band.ends.tail = index;
  } else {
    Mut(record.next).prev = index;
  }
}

void EvictionOrder::Remove(BlockId block) {
  const uint32_t index = Index(block);
  Block& record = Mut(index);
  Band& band = bands_[record.band];
  if (record.place == Place::kLate) {
    HeapRemove(band, record.prev);
  } else {
    journal_->Save(band.ends);
    (record.prev == kNil ? band.ends.head : Mut(record.prev).next) = record.next;
    (record.next == kNil ? band.ends.tail : Mut(record.next).prev) = record.prev;
  }
  record.place = Place::kNone;
  MarkUsed(record.band);
}

void EvictionOrder::Append(uint32_t index) {
  Block& record = blocks_[index];
  record.band = BandOf(record);
  record.place = Place::kBand;
  Ends& ends = bands_[record.band].ends;
  record.prev = ends.tail;
  record.next = kNil;
  (ends.tail == kNil ? ends.head : blocks_[ends.tail].next) = index;
  ends.tail = index;
  used_bands_[record.band / 64] |= uint64_t{1} << (record.band % 64);
}

void EvictionOrder::RemoveRun(uint32_t front, uint32_t back) {
  const uint8_t band = blocks_[front].band;
  Ends& ends = bands_[band].ends;
  const uint32_t before = blocks_[front].prev;
  const uint32_t after = blocks_[back].next;
  (before == kNil ? ends.head : blocks_[before].next) = after;
  (after == kNil ? ends.tail : blocks_[after].prev) = before;
  MarkUsed(band);
}

bool EvictionOrder::AppendRun(uint32_t front, uint32_t back) {
  const uint8_t band = blocks_[front].band;
  Ends& ends = bands_[band].ends;
  if (ends.tail != kNil && blocks_[ends.tail].last_use > blocks_[front].last_use) return false;
  (ends.tail == kNil ? ends.head : blocks_[ends.tail].next) = front;
  blocks_[front].prev = ends.tail;
  blocks_[back].next = kNil;
  ends.tail = back;
  MarkUsed(band);
  return true;
}

const EvictionOrder::Band* EvictionOrder::FirstBand() const {
  if (used_bands_[0] != 0) return &bands_[static_cast<size_t>(std::countr_zero(used_bands_[0]))];
  if (used_bands_[1] == 0) return nullptr;
  return &bands_[64 + static_cast<size_t>(std::countr_zero(used_bands_[1]))];
}

BlockId EvictionOrder::ListedFront() const {
  const Band* band = FirstBand();
  return band == nullptr || !band->late.empty() ? kNoBlock : BlockId{band->ends.head};
}

void EvictionOrder::CutBefore(uint8_t band, uint32_t front) {
  Ends& ends = bands_[band].ends;
  ends.head = front;
  (front == kNil ? ends.tail : blocks_[front].prev) = kNil;
  MarkUsed(band);
}

BlockId EvictionOrder::First() const {
  if (FirstBand() == nullptr) return kNoBlock;
  const Band& band = *FirstBand();
  if (band.late.empty()) return BlockId{band.ends.head};
  if (band.ends.head == kNil) return BlockId{band.late[0]};
  const bool late_first = blocks_[band.late[0]].last_use < blocks_[band.ends.head].last_use;
  return BlockId{late_first ? band.late[0] : band.ends.head};
}

void EvictionOrder::HeapPlace(Band& band, uint32_t position, uint32_t index) {
  band.late[position] = index;
  Mut(index).prev = position;
}

void EvictionOrder::HeapInsert(Band& band, uint32_t index) {
  if (journal_->active()) {
    journal_->OnRollback([&band, copy = band.late] { band.late = copy; });
  }
  Mut(index).place = Place::kLate;
  band.late.push_back(index);
  HeapPlace(band, static_cast<uint32_t>(band.late.size() - 1), index);
  SiftUp(band, static_cast<uint32_t>(band.late.size() - 1));
}

void EvictionOrder::HeapRemove(Band& band, uint32_t position) {
  if (journal_->active()) {
    journal_->OnRollback([&band, copy = band.late] { band.late = copy; });
  }
  const uint32_t moved = band.late.back();
  band.late.pop_back();
  if (position == band.late.size()) return;
  HeapPlace(band, position, moved);
  SiftUp(band, position);
  SiftDown(band, blocks_[moved].prev);
}

void EvictionOrder::SiftUp(Band& band, uint32_t position) {
  const uint32_t index = band.late[position];
  while (position > 0) {
    const uint32_t parent = (position - 1) / 2;
    if (blocks_[band.late[parent]].last_use <= blocks_[index].last_use) break;
    HeapPlace(band, position, band.late[parent]);
    position = parent;
  }
  HeapPlace(band, position, index);
}

void EvictionOrder::SiftDown(Band& band, uint32_t position) {
  const uint32_t index = band.late[position];
  const auto size = static_cast<uint32_t>(band.late.size());
  while (2 * position + 1 < size) {
    uint32_t child = 2 * position + 1;
    if (child + 1 < size &&
        blocks_[band.late[child + 1]].last_use < blocks_[band.late[child]].last_use) {
      ++child;
    }
    if (blocks_[index].last_use <= blocks_[band.late[child]].last_use) break;
    HeapPlace(band, position, band.late[child]);
    position = child;
  }
  HeapPlace(band, position, index);
}

}  // namespace quire
