// Asks for memory ahead of its reader.
#ifndef QUIRE_KERNELS_CPU_PREFETCH_CURSOR_H_
#define QUIRE_KERNELS_CPU_PREFETCH_CURSOR_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace quire::kernels::cpu {

// Memory in the order in which it will be read. The cursor is asked for what lies kDistance ahead
// of the reader, who advances it by what he has read: near enough for the hardware's own
// prefetchers to see one stream, far enough to reach the next block before its first key is needed.
class PrefetchCursor {
 public:
  static constexpr int64_t kDistance = 8192;

  void Reserve(size_t runs) { runs_.reserve(runs); }

  void Clear() {
    runs_.clear();
    next_ = 0;
    at_ = end_ = nullptr;
  }

  // Forgets what was asked for.
  void DropFinished() {
    runs_.erase(runs_.begin(), runs_.begin() + static_cast<std::ptrdiff_t>(next_));
    next_ = 0;
  }

  // Joins the run before it if it follows it.
  void Add(const std::byte* begin, int64_t bytes) {
    if (next_ < runs_.size() && runs_.back().begin + runs_.back().bytes == begin) {
      runs_.back().bytes += bytes;
    } else {
      runs_.push_back({begin, bytes});
    }
  }

  // Asks for the next `bytes`. In inner loops: all that is rare is elsewhere.
  void Advance(int64_t bytes) {
    if (bytes > end_ - at_) return Cross(bytes);
    for (const std::byte* end = at_ + bytes; at_ < end; at_ += 64) Ask(at_);
  }

 private:
  struct Run {
    const std::byte* begin;
    int64_t bytes;
  };

  static void Ask(const std::byte* line) { __builtin_prefetch(line, 0, 3); }

  // Advance over the end of a run.
  [[gnu::noinline]] void Cross(int64_t bytes) {
    for (; at_ < end_; at_ += 64, bytes -= 64) Ask(at_);
    while (bytes > 0 && next_ < runs_.size()) {
      at_ = runs_[next_].begin;
      end_ = at_ + runs_[next_].bytes;
      ++next_;
      for (; bytes > 0 && at_ < end_; at_ += 64, bytes -= 64) Ask(at_);
    }
  }

  // Runs from next_ on are not begun.
  std::vector<Run> runs_;
  size_t next_ = 0;
  const std::byte* at_ = nullptr;
  const std::byte* end_ = nullptr;
};

}  // namespace quire::kernels::cpu

#endif  // QUIRE_KERNELS_CPU_PREFETCH_CURSOR_H_
