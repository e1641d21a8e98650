// Victims against a naive model that sorts all hold-free leaves by priority and last use.
#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/scenario.h"

namespace quire::testing {
namespace {

constexpr uint32_t kBlockTokens = 4;
constexpr uint32_t kBlocks = 24;

// A block's content is named by its path: one letter per block from the root.
using Path = std::string;

Tokens TokensOf(const Path& path) {
  Tokens tokens;
  for (const char letter : path) {
    for (uint32_t i = 0; i < kBlockTokens; ++i) {
      tokens.push_back(static_cast<uint32_t>(letter) * 1000 + i);
    }
  }
  return tokens;
}

// The rules E1-E3 for whole sealed blocks of one full-attention group, as slowly as possible.
class NaiveEviction {
 public:
  struct Block {
    uint32_t priority = kDefaultPriority;
    std::optional<Duration> duration;
    uint64_t last_use = 0;
    Duration last_use_time{};
    int holders = 0;
  };

  // False if the pool cannot hold the path and one unsealed block beside what is held.
  bool Begin(const Path& path, const std::optional<RetentionRange>& retention, Duration now) {
    Expire(now);
    const size_t hit = HitOf(path);
    const size_t needed = path.size() - hit + 1;
    ForPrefixes(path, hit, [&](const Path& prefix) { ++resident_[prefix].holders; });
    const size_t evictable = static_cast<size_t>(
        std::count_if(resident_.begin(), resident_.end(),
                      [](const auto& entry) { return entry.second.holders == 0; }));
    if (needed > free_ + evictable) {
      ForPrefixes(path, hit, [&](const Path& prefix) { --resident_[prefix].holders; });
      return false;
    }
    while (free_ < needed) Evict();
    free_ -= needed;
    ForPrefixes(path, path.size(), [&](const Path& prefix) {
      const bool is_new = prefix.size() > hit;
      Block& block = resident_[prefix];
      if (is_new) block.holders = 1;
      const size_t first_token = (prefix.size() - 1) * kBlockTokens;
      if (retention && first_token >= retention->start && first_token < retention->end) {
        block.priority = retention->priority;
        block.duration = retention->duration;
      }
    });
    return true;
  }

  void Finish(const Path& path, Duration now) {
    ++free_;
    for (size_t depth = path.size(); depth > 0; --depth) {
      Block& block = resident_.at(path.substr(0, depth));
      if (--block.holders > 0) continue;
      block.last_use = ++uses_;
      block.last_use_time = now;
    }
  }

  size_t HitOf(const Path& path) const {
    size_t hit = 0;
    while (hit < path.size() && resident_.contains(path.substr(0, hit + 1))) ++hit;
    return hit;
  }

  size_t free() const { return free_; }

 private:
  template <typename Function>
  static void ForPrefixes(const Path& path, size_t depth, Function function) {
    for (size_t i = 1; i <= depth; ++i) function(path.substr(0, i));
  }

  bool IsLeaf(const Path& path) const {
    const auto next = std::next(resident_.find(path));
    return next == resident_.end() || !next->first.starts_with(path);
  }

  // An idle block whose duration is over has the default priority from then on.
  void Expire(Duration now) {
    for (auto& [path, block] : resident_) {
      if (block.holders > 0 || !block.duration || now < block.last_use_time + *block.duration) {
        continue;
      }
      block.priority = kDefaultPriority;
      block.duration.reset();
    }
  }

  void Evict() {
    std::vector<std::tuple<uint32_t, uint64_t, Path>> leaves;
    for (const auto& [path, block] : resident_) {
      if (block.holders > 0 || !IsLeaf(path)) continue;
      leaves.emplace_back(block.priority, block.last_use, path);
    }
    std::sort(leaves.begin(), leaves.end());
    resident_.erase(std::get<Path>(leaves.at(0)));
    ++free_;
  }

  std::map<Path, Block> resident_;
  size_t free_ = kBlocks;
  uint64_t uses_ = 0;
};

class EvictionModel : public ::testing::TestWithParam<uint32_t> {
 protected:
  uint32_t Draw(uint32_t below) { return static_cast<uint32_t>(random_() % below); }

  Path DrawPath() {
    Path path;
    for (uint32_t depth = 1 + Draw(5); depth > 0; --depth) {
      path += static_cast<char>('a' + Draw(3));
    }
    return path;
  }

  std::optional<RetentionRange> DrawRetention() {
    if (Draw(2) == 0) return std::nullopt;
    RetentionRange range;
    range.start = Draw(8);
    range.end = range.start + 1 + Draw(16);
    range.priority = Draw(4) * 33;
    if (Draw(2) == 0) range.duration = std::chrono::milliseconds(1 + Draw(30));
    return range;
  }

  void Begin(Worker& w, Duration now) {
    const Path path = DrawPath();
    const auto retention = DrawRetention();
    BeginOptions options;
    if (retention) options.retention = {*retention};
    // The tail token is unlike any block's first token: it makes the unsealed block.
    const Tokens tokens = Join(TokensOf(path), {7});
    const size_t hit = model_.HitOf(path);
    const SequenceHandle handle = next_++;
    const StepResult answer = w.Do(Batch().Begin(handle, tokens, options));
    w.Settle();
    ASSERT_EQ(ErrorOf(answer).ok(), model_.Begin(path, retention, now)) << path;
    if (!ErrorOf(answer).ok()) return;
    EXPECT_EQ(answer.begins.at(0).reused_tokens, hit * kBlockTokens) << path;
    w.Commit(handle, w.Length(handle));
    live_[handle] = path;
  }

  void Finish(Worker& w, Duration now) {
    if (live_.empty()) return;
    const auto chosen = std::next(live_.begin(), Draw(static_cast<uint32_t>(live_.size())));
    w.Finish(chosen->first);
    model_.Finish(chosen->second, now);
    live_.erase(chosen);
  }

  void ExpectEqualContent(Story& story) {
    ASSERT_EQ(story.Blocks().free, model_.free());
    for (const char a : {'a', 'b', 'c'}) {
      for (const char b : {'a', 'b', 'c'}) {
        for (const char c : {'a', 'b', 'c'}) {
          for (const char* tail : {"aa", "bb", "cc", "ab", "bc", "ca", "ba", "cb", "ac"}) {
            const Path path = Path{a, b, c} + tail;
            ASSERT_EQ(story.Peek(Join(TokensOf(path), {7})), model_.HitOf(path) * kBlockTokens)
                << path;
          }
        }
      }
    }
  }

  std::mt19937 random_{GetParam()};
  NaiveEviction model_;
  std::map<SequenceHandle, Path> live_;
  SequenceHandle next_ = 1;
};

TEST_P(EvictionModel, S45_VictimsAreThoseOfTheNaiveModel) {
  SCOPED_TRACE("seed " + std::to_string(GetParam()));
  FacadeStory story(Pool(kBlockTokens, kBlocks));
  Worker& w = story.Attach("w");
  for (int i = 0; i < 1500 && !HasFatalFailure(); ++i) {
    SCOPED_TRACE("operation " + std::to_string(i));
    switch (Draw(5)) {
      case 0:
      case 1:
        Begin(w, story.facade().now());
        break;
      case 2:
      case 3:
        Finish(w, story.facade().now());
        break;
      default:
        story.Pass(std::chrono::milliseconds(Draw(12)));
    }
    if (!HasFatalFailure()) ExpectEqualContent(story);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, EvictionModel, ::testing::Values(1u, 2u, 3u, 4u));

}  // namespace
}  // namespace quire::testing
