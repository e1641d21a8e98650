// Memory of sequences that stays theirs: one that ended can still be looked at, and reads as
// nobody's.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_SEQUENCE_STORE_H_
#define QUIRE_CACHE_SERVICE_ENGINE_SEQUENCE_STORE_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "cache_service/engine/sequence.h"

namespace quire {

// Sequences lie in pieces of many, in the order of their begins as long as none has ended. Must
// outlive what it gave out. Not thread-safe.
class SequenceStore {
 public:
  struct GiveBack {
    SequenceStore* store = nullptr;

    void operator()(Sequence* sequence) const { store->Free(sequence); }
  };

  using Owned = std::unique_ptr<Sequence, GiveBack>;

  Owned New() {
    if (free_.empty()) return Owned(&Add(), {this});
    Sequence* const sequence = free_.back();
    free_.pop_back();
    return Owned(sequence, {this});
  }

 private:
  static constexpr size_t kPiece = 64;

  Sequence& Add() {
    if (pieces_.empty() || pieces_.back().size() == kPiece) {
      pieces_.emplace_back().reserve(kPiece);
      free_.reserve(pieces_.size() * kPiece);
    }
    return pieces_.back().emplace_back();
  }

  // Its worker is kNoWorker from now on.
  void Free(Sequence* sequence) {
    *sequence = Sequence();
    free_.push_back(sequence);
  }

  // None ever has more than kPiece, so that they stay where they are.
  std::vector<std::vector<Sequence>> pieces_;
  std::vector<Sequence*> free_;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_SEQUENCE_STORE_H_
