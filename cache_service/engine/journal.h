// Undo log of one all-or-nothing step.
//
// While active, code that changes engine state first saves what it overwrites; Rollback restores it
// in reverse order, bit for bit. While inactive, saving is one branch. Not thread-safe.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_JOURNAL_H_
#define QUIRE_CACHE_SERVICE_ENGINE_JOURNAL_H_

#include <cstddef>
#include <cstring>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

namespace quire {

class Journal {
 public:
  bool active() const { return active_; }

  void Start() { active_ = true; }

  // Keeps all changes.
  void Commit() { Clear(); }

  void Rollback() {
    active_ = false;
    while (!entries_.empty()) {
      Entry& entry = entries_.back();
      if (entry.address != nullptr) {
        std::memcpy(entry.address, bytes_.data() + entry.offset, entry.size);
        bytes_.resize(entry.offset);
      } else {
        entry.undo();
      }
      entries_.pop_back();
    }
    Clear();
  }

  // `object` must stay at its address until the step ends.
  template <typename T>
  void Save(T& object) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (active_) SaveBytes(&object, sizeof(T));
  }

  void SaveBytes(void* address, size_t size) {
    if (!active_) return;
    const size_t offset = bytes_.size();
    bytes_.resize(offset + size);
    std::memcpy(bytes_.data() + offset, address, size);
    entries_.push_back({address, offset, size, {}});
  }

  // For what is not plain bytes: `undo` runs on rollback.
  template <typename Undo>
  void OnRollback(Undo undo) {
    if (active_) entries_.push_back({nullptr, 0, 0, std::move(undo)});
  }

 private:
  struct Entry {
    void* address;
    size_t offset;
    size_t size;
    std::function<void()> undo;
  };

  void Clear() {
    active_ = false;
    entries_.clear();
    bytes_.clear();
  }

  bool active_ = false;
  std::vector<Entry> entries_;
  std::vector<std::byte> bytes_;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_JOURNAL_H_
