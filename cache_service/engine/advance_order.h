// Which sequences a worker advanced, in the order of its columns: the next step mostly names the
// same ones, so that a look at each tells what otherwise the map of handles must.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_ADVANCE_ORDER_H_
#define QUIRE_CACHE_SERVICE_ENGINE_ADVANCE_ORDER_H_

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "cache_service/engine/sequence.h"

namespace quire {

// The sequences may have ended meanwhile, their memory must still be there (SequenceStore). Not
// thread-safe.
class AdvanceOrder {
 public:
  // Before the lookups of an advance of `step`.
  void Start(StepNumber step) {
    if (step == step_) return;
    step_ = step;
    std::swap(before_, now_);
    now_.clear();
    next_ = 0;
    for (size_t i = 0; i < std::min(kAhead, before_.size()); ++i) {
      __builtin_prefetch(before_[i], 1);
    }
  }

  // Sequences that ended can still come back: what is known is no evidence.
  void Forget() { before_.clear(); }

  // Looks up each handle, by `find` where the order tells nothing; null: there is no such sequence.
  // The result is valid until the next call.
  template <typename Find>
  std::span<Sequence* const> LookUp(std::span<const SequenceHandle> handles, WorkerSlot worker,
                                    Find find) {
    const size_t first = now_.size();
    now_.resize(first + handles.size());
    Sequence** out = now_.data() + first;
    const std::span<Sequence* const> before(before_);
    size_t next = next_;
    for (const SequenceHandle handle : handles) {
      if (next + kAhead < before.size()) __builtin_prefetch(before[next + kAhead], 1);
      if (Is(before, next, handle, worker)) {
        *out++ = before[next++];
      } else if (Is(before, next + 1, handle, worker)) {
        *out++ = before[next + 1];
        next += 2;
      } else {
        *out++ = find(handle);
      }
    }
    next_ = next;
    return std::span(now_).subspan(first);
  }

 private:
  static constexpr size_t kAhead = 16;

  static bool Is(std::span<Sequence* const> sequences, size_t place, SequenceHandle handle,
                 WorkerSlot worker) {
    if (place >= sequences.size() || sequences[place] == nullptr) return false;
    return sequences[place]->handle == handle && sequences[place]->worker == worker;
  }

  StepNumber step_ = 0;
  std::vector<Sequence*> before_;
  std::vector<Sequence*> now_;
  // In `before_`: the one after the last that was found there.
  size_t next_ = 0;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_ADVANCE_ORDER_H_
