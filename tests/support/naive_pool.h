// The pool of the naive model: everything is written down plainly and every question is answered by
// scanning all of it. Shares nothing with the engine but plain parameter structs and pure
// functions.
#ifndef QUIRE_TESTS_SUPPORT_NAIVE_POOL_H_
#define QUIRE_TESTS_SUPPORT_NAIVE_POOL_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cache_service/base/clock.h"
#include "cache_service/engine/engine_options.h"
#include "cache_service/engine/engine_stats.h"
#include "cache_service/engine/namespace_key.h"
#include "cache_service/engine/retention.h"
#include "cache_service/engine/types.h"

namespace quire::testing {

// Contents of tokens; each different (id, digest, offset) is one number.
using Items = std::u32string;

// Content of one sealed block in the tree: the whole way from the root.
struct NaiveContent {
  uint32_t group = 0;
  uint32_t space = 0;
  Items prefix{};
  // Who sealed it, in which step; everybody else sees it only when public.
  int worker = 0;
  StepNumber step = 0;
  bool is_public = false;
  // Birth of the sequence that sealed it, and the order of sealing.
  uint64_t sealer = 0;
  uint64_t seal_order = 0;
  uint32_t priority = kDefaultPriority;
  std::optional<Duration> duration{};
  // When the last table let go.
  uint64_t last_use = 0;
  TimePoint let_go{};
  // A block of the same place in another group is gone, so that no hit can use this one.
  bool dead = false;

  bool SamePlace(const NaiveContent& other) const {
    return group == other.group && SamePrefix(other);
  }

  bool SamePrefix(const NaiveContent& other) const {
    return space == other.space && prefix == other.prefix;
  }

  // True if `other` continues this content, in whatever group.
  bool Before(const NaiveContent& other) const {
    return space == other.space && other.prefix.size() > prefix.size() &&
           other.prefix.compare(0, prefix.size(), prefix) == 0;
  }

  // True if `other` stands further down behind this content.
  bool Above(const NaiveContent& other) const {
    return !dead && group == other.group && Before(other);
  }
};

using NaiveSequenceKey = std::pair<int, SequenceHandle>;

struct NaiveSequence {
  uint64_t birth = 0;
  NamespaceParts parts{};
  uint32_t space = 0;
  // Tokens with slots, then given tokens that have none yet.
  Items items{};
  // Step in which each token with a slot entered; 0: reused, computed before.
  std::vector<StepNumber> entered{};
  uint32_t committed = 0;
  uint32_t reserved = 0;
  std::vector<std::vector<BlockId>> tables{};
  std::vector<RetentionRange> retention{};
  // Held a block whose content was taken out.
  bool publishes = true;

  uint32_t length() const { return static_cast<uint32_t>(entered.size()); }
};

// A block that a worker let go, or that a copy names, until the step is complete.
struct NaiveHold {
  BlockId block = kNoBlock;
  int worker = 0;
  StepNumber step = 0;
};

struct NaivePin {
  std::string id{};
  std::vector<BlockId> blocks{};
  TimePoint deadline{};
};

// What holds one block, counted afresh.
struct NaiveHolders {
  uint32_t tables = 0;
  uint32_t pins = 0;
  uint32_t copies = 0;
  std::set<int> releasing{};

  bool Held() const { return tables + pins + copies > 0; }

  // Nothing but releases of this worker is left.
  bool AvailableTo(int worker) const {
    return !Held() && (releasing.empty() || (releasing.size() == 1 && releasing.contains(worker)));
  }
};

// Stands for somebody who has released nothing.
inline constexpr int kNoNaiveWorker = -1;

// A value: a copy is a complete snapshot.
struct NaivePool {
  uint32_t block_count = 0;
  uint32_t block_tokens = 0;
  std::vector<GroupSpec> groups{};
  std::map<BlockId, NaiveContent> content{};
  // Was put into the tree, and may be in it still.
  std::set<BlockId> sealed{};
  std::vector<NaiveHold> releases{};
  std::vector<NaiveHold> copies{};
  std::vector<NaivePin> pins{};
  std::map<NaiveSequenceKey, NaiveSequence> sequences{};
  // Last refusal of waiting sequences, by birth.
  std::map<uint64_t, TimePoint> waiters{};
  uint64_t uses = 0;
  uint64_t births = 0;
  uint64_t seals = 0;

  std::vector<NaiveHolders> Holders() const;
  std::vector<BlockId> FreeFor(int worker) const;
  std::vector<BlockId> EvictableFor(int worker) const;
  // The next block to evict for the worker; kNoBlock if there is none.
  BlockId VictimFor(int worker) const;
  bool HasChild(const NaiveContent& content) const;
  // Pending where other content of the place stood earlier: kept until it is complete. Or such
  // content of another worker stands beside it and something hangs below, which may be the other's.
  bool IsTwin(BlockId block) const;
  // The window behind the end of `leaf` touches this block of a window group.
  bool InWindowOf(const NaiveContent& mine, const NaiveContent& leaf) const;
  // Nothing that is resident continues it.
  bool IsLeaf(const NaiveContent& content) const;
  // It will be a leaf when all is gone that everybody may evict.
  bool StaysAsLeaf(const NaiveContent& content) const;
  BlockStateCounts Counts() const;
  // Released, or held by copies without being content, and nothing else.
  std::set<BlockId> Fenced() const;
  uint64_t HeldBy(int worker) const;
  // Block of this content that the worker sees, the public one first; kNoBlock: none.
  BlockId Find(uint32_t group, uint32_t space, const Items& prefix, int worker) const;

  // One table of the worker let go of the block in this step.
  void LetGo(BlockId block, int worker, StepNumber step, TimePoint now);
  // The content leaves the tree; sequences that hold it publish nothing more.
  void TakeOut(BlockId block);
  // Room is needed: the content is lost, and what cannot be used without it is dead.
  void Evict(BlockId block);
  // Pins keep nothing that is not in the tree.
  void UnpinRemoved();
  void ExpireRetention(TimePoint now);

  // Everything, for reports.
  std::string Describe() const;
};

}  // namespace quire::testing

#endif  // QUIRE_TESTS_SUPPORT_NAIVE_POOL_H_
