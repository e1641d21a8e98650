// Sequences of one worker that decode together, through a socket.
#ifndef QUIRE_TESTS_BENCH_DECODE_BATCH_H_
#define QUIRE_TESTS_BENCH_DECODE_BATCH_H_

#include <cstdint>
#include <vector>

#include "quire/v1/cache_service.pb.h"

namespace quire::bench {

// Not thread-safe.
class DecodeBatch {
 public:
  // `salt` keeps the prompts of several batches apart.
  DecodeBatch(uint32_t sequences, uint32_t salt) {
    for (uint32_t i = 0; i < sequences; ++i) lengths_.push_back(100 + i % 16);
    salt_ = salt;
  }

  void FillBegins(v1::StepBatch& batch, uint32_t first, uint32_t count) const {
    for (uint32_t i = first; i < first + count && i < lengths_.size(); ++i) {
      v1::BeginOperation& begin = *batch.add_operations()->mutable_begin();
      begin.set_sequence(i + 1);
      for (uint32_t t = 0; t < lengths_[i]; ++t) {
        begin.add_tokens((salt_ * 4096 + i) * 1'000'003u + t);
      }
    }
  }

  void FillFinishes(v1::StepBatch& batch) const {
    for (uint32_t i = 0; i < lengths_.size(); ++i) {
      batch.add_operations()->mutable_finish()->set_sequence(i + 1);
    }
  }

  // One token each, with eight slots of look-ahead.
  void FillAdvance(v1::StepBatch& batch) {
    v1::AdvanceOperation& advance = *batch.add_operations()->mutable_advance();
    for (uint32_t i = 0; i < lengths_.size(); ++i) {
      advance.add_sequences(i + 1);
      advance.add_start_lengths(lengths_[i]++);
      advance.add_tokens(7);
    }
    advance.set_ahead(8);
  }

 private:
  std::vector<uint32_t> lengths_;
  uint32_t salt_ = 0;
};

}  // namespace quire::bench

#endif  // QUIRE_TESTS_BENCH_DECODE_BATCH_H_
