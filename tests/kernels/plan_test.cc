// Properties of the work plan: complete, disjoint, bounded, repeatable.
#include "kernels/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

#include "tests/kernels/testing/pool_fixture.h"

namespace quire::kernels::testing {
namespace {

constexpr PlanShape kShape = {8, 2, 64, 16};

struct Batch {
  std::vector<PlanSequence> sequences;

  void Add(int64_t kv, int64_t q) {
    const int64_t row = sequences.empty() ? 0 : sequences.back().q_row + sequences.back().q_tokens;
    sequences.push_back({row, q, kv - q, 0, kv});
  }
};

Batch RandomBatch(uint64_t seed) {
  Random random(seed);
  Batch batch;
  const int64_t count = random.Below(12);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t kv = random.Below(3) == 0 ? random.Below(3000) : random.Below(90);
    batch.Add(kv, random.Below(4) == 0 ? random.Below(50) : 1);
  }
  return batch;
}

bool Sees(const AttentionMask& mask, int64_t query, int64_t key) {
  if (mask.causal && key > query) return false;
  return mask.window_left < 0 || key < mask.keep_first || key >= query - mask.window_left;
}

// How often an item covers (sequence, query row, key).
void ExpectEachVisibleKeyOnce(const Batch& batch, const AttentionMask& mask,
                              const AttentionPlan& plan) {
  for (size_t s = 0; s < batch.sequences.size(); ++s) {
    const PlanSequence& sequence = batch.sequences[s];
    for (int64_t q = 0; q < sequence.q_tokens; ++q) {
      std::vector<int> covered(static_cast<size_t>(sequence.kv_end), 0);
      for (const PlanItem& item : plan.items) {
        const int64_t at = sequence.q_row + q - item.q_row;
        if (item.sequence != static_cast<int32_t>(s) || at < 0 || at >= item.q_tokens) continue;
        ASSERT_LE(item.kv_end, sequence.kv_end);
        for (int64_t k = item.kv_begin; k < item.kv_end; ++k) ++covered[static_cast<size_t>(k)];
      }
      for (int64_t k = 0; k < sequence.kv_end; ++k) {
        const int times = covered[static_cast<size_t>(k)];
        ASSERT_LE(times, 1);
        if (Sees(mask, sequence.first_position + q, k)) {
          ASSERT_EQ(times, 1) << "sequence " << s << " query " << q << " key " << k;
        }
      }
    }
  }
}

// Every query row is written by exactly one item or one merge; partial rows are
// in one merge.
void ExpectEachRowWrittenOnce(const AttentionPlan& plan) {
  std::vector<int> written(static_cast<size_t>(plan.q_rows), 0);
  std::map<int64_t, int64_t> partial;
  for (const PlanItem& item : plan.items) {
    for (int64_t r = 0; r < item.q_tokens; ++r) {
      if (item.partial_row < 0) ++written[static_cast<size_t>(item.q_row + r)];
      if (item.partial_row >= 0) partial[item.partial_row + r] = item.q_row + r;
    }
  }
  ASSERT_EQ(static_cast<int64_t>(partial.size()), plan.partial_rows);
  for (const PlanMerge& merge : plan.merges) {
    for (int64_t r = 0; r < merge.q_tokens; ++r) {
      ++written[static_cast<size_t>(merge.q_row + r)];
      for (int32_t p = merge.first_part; p < merge.last_part; ++p) {
        const auto found = partial.find(plan.merge_rows[static_cast<size_t>(p)] + r);
        ASSERT_NE(found, partial.end());
        ASSERT_EQ(found->second, merge.q_row + r);
        partial.erase(found);
      }
    }
  }
  EXPECT_TRUE(partial.empty());
  EXPECT_TRUE(std::all_of(written.begin(), written.end(), [](int n) { return n == 1; }));
}

void ExpectSound(const AttentionPlan& plan, const PlanOptions& options) {
  ASSERT_GE(plan.part_begin.size(), 1u);
  EXPECT_LE(static_cast<int32_t>(plan.part_begin.size()) - 1, options.parts);
  EXPECT_EQ(plan.part_begin.back(), static_cast<int32_t>(plan.items.size()));
  EXPECT_TRUE(std::is_sorted(plan.part_begin.begin(), plan.part_begin.end()));
  EXPECT_EQ(plan.workspace_bytes, plan.partial_rows * kShape.q_heads * (kShape.head_dim + 1) * 4);
  for (const PlanItem& item : plan.items) {
    EXPECT_LT(item.kv_begin, item.kv_end);
    EXPECT_GT(item.q_tokens, 0);
  }
}

std::vector<AttentionMask> Masks() { return {{}, {false}, {true, 40}, {true, 70, 20}, {true, 0}}; }

TEST(PlanTest, CoversEveryVisibleKeyOnce) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Batch batch = RandomBatch(seed);
    for (const AttentionMask& mask : Masks()) {
      PlanOptions options;
      options.parts = static_cast<int32_t>(1 + seed % 9);
      options.min_piece_per_row = seed % 2 == 0 ? 1 : 64;
      options.fixed_split = seed % 5 == 0 ? 96 : 0;
      options.q_tile_rows = seed % 3 == 0 ? 16 : 64;
      SCOPED_TRACE(seed);
      const Result<AttentionPlan> plan = MakePlan(batch.sequences, kShape, mask, options);
      ASSERT_TRUE(plan.ok());
      ExpectSound(*plan, options);
      ExpectEachVisibleKeyOnce(batch, mask, *plan);
      ExpectEachRowWrittenOnce(*plan);
    }
  }
}

TEST(PlanTest, CascadeCoversPrefixOnceForAll) {
  Batch batch;
  for (int i = 0; i < 6; ++i) batch.Add(300 + 17 * i, 1 + i % 3);
  PlanOptions options;
  options.parts = 4;
  const Result<AttentionPlan> plan = MakeCascadePlan(batch.sequences, 256, kShape, {}, options);
  ASSERT_TRUE(plan.ok());
  ExpectSound(*plan, options);
  ExpectEachRowWrittenOnce(*plan);
  std::vector<int64_t> keys(static_cast<size_t>(plan->q_rows), 0);
  for (const PlanItem& item : plan->items) {
    const bool shared = item.sequence == plan->sequences;
    EXPECT_TRUE(shared ? item.kv_end <= 256 : item.kv_begin >= 256);
    for (int64_t r = 0; shared && r < item.q_tokens; ++r) {
      keys[static_cast<size_t>(item.q_row + r)] += item.kv_end - item.kv_begin;
    }
  }
  EXPECT_TRUE(std::all_of(keys.begin(), keys.end(), [](int64_t n) { return n == 256; }));
}

TEST(PlanTest, SameInputSamePlan) {
  const Batch batch = RandomBatch(7);
  PlanOptions options;
  options.parts = 5;
  const Result<AttentionPlan> a = MakePlan(batch.sequences, kShape, {}, options);
  const Result<AttentionPlan> b = MakePlan(batch.sequences, kShape, {}, options);
  ASSERT_TRUE(a.ok() && b.ok());
  ASSERT_EQ(a->items.size(), b->items.size());
  for (size_t i = 0; i < a->items.size(); ++i) {
    EXPECT_EQ(a->items[i].kv_begin, b->items[i].kv_begin);
    EXPECT_EQ(a->items[i].partial_row, b->items[i].partial_row);
  }
  EXPECT_EQ(a->inputs, b->inputs);
}

TEST(PlanTest, FixedSplitsIgnoreTheBatch) {
  PlanOptions options;
  options.parts = 3;
  options.fixed_split = 256;
  Batch alone;
  alone.Add(1000, 1);
  Batch many = alone;
  for (int i = 0; i < 20; ++i) many.Add(77 * i, 1);
  const Result<AttentionPlan> a = MakePlan(alone.sequences, kShape, {}, options);
  const Result<AttentionPlan> b = MakePlan(many.sequences, kShape, {}, options);
  ASSERT_TRUE(a.ok() && b.ok());
  ASSERT_EQ(a->items.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(a->items[i].kv_begin, static_cast<int64_t>(i) * 256);
    EXPECT_EQ(b->items[i].kv_begin, a->items[i].kv_begin);
    EXPECT_EQ(b->items[i].kv_end, a->items[i].kv_end);
  }
}

TEST(PlanTest, OneLongSequenceUsesAllParts) {
  for (const int64_t q : {int64_t{1}, int64_t{4}}) {
    Batch batch;
    batch.Add(32768, q);
    PlanOptions options;
    options.parts = 8;
    const Result<AttentionPlan> plan = MakePlan(batch.sequences, kShape, {}, options);
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(plan->part_begin.size(), 9u) << q;
    for (const PlanItem& item : plan->items) EXPECT_LE(item.kv_end - item.kv_begin, 4096 + 192);
  }
}

TEST(PlanTest, PiecesAreWorthTheirPartialState) {
  Batch batch;
  batch.Add(4096, 1);
  PlanOptions options;
  options.parts = 1000;
  const Result<AttentionPlan> plan = MakePlan(batch.sequences, kShape, {}, options);
  ASSERT_TRUE(plan.ok());
  // Four query rows per KV head: at least 256 keys a piece.
  for (const PlanItem& item : plan->items) EXPECT_GE(item.kv_end - item.kv_begin, 256);
}

TEST(PlanTest, SequencesThatSeeNothingAreWritten) {
  Batch batch;
  batch.Add(0, 1);
  batch.Add(2, 70);
  const Result<AttentionPlan> plan = MakePlan(batch.sequences, kShape, {}, {.parts = 2});
  ASSERT_TRUE(plan.ok());
  ExpectEachRowWrittenOnce(*plan);
  EXPECT_FALSE(plan->merges.empty());
  EXPECT_EQ(plan->merges[0].first_part, plan->merges[0].last_part);
}

TEST(PlanTest, EmptyBatch) {
  const Result<AttentionPlan> plan = MakePlan({}, kShape, {}, {.parts = 2});
  ASSERT_TRUE(plan.ok());
  EXPECT_TRUE(plan->items.empty());
  EXPECT_EQ(plan->workspace_bytes, 0);
}

TEST(PlanTest, HundredThousandSequences) {
  Batch batch;
  Random random(5);
  int64_t keys = 0;
  for (int i = 0; i < 100000; ++i) {
    const int64_t kv = i == 500 ? 1000000 : random.Below(200);
    batch.Add(kv, 1);
    keys += kv;
  }
  PlanOptions options;
  options.parts = 132;
  const Result<AttentionPlan> plan = MakePlan(batch.sequences, kShape, {}, options);
  ASSERT_TRUE(plan.ok());
  ExpectSound(*plan, options);
  for (const PlanItem& item : plan->items) keys -= item.kv_end - item.kv_begin;
  EXPECT_EQ(keys, 0);
}

TEST(PlanTest, CascadeRule) {
  EXPECT_FALSE(CascadePays(1, 1, 1 << 20, 8, 2));
  EXPECT_FALSE(CascadePays(2, 1, 128, 8, 2));
  EXPECT_TRUE(CascadePays(2, 1, 129, 8, 2));
  EXPECT_TRUE(CascadePays(100, 1, 80, 8, 2));
}

TEST(PlanTest, BadOptionsAreNamed) {
  PlanOptions options;
  options.parts = -1;
  EXPECT_EQ(MakePlan({}, kShape, {}, options).status().argument(), "options.parts");
  options.parts = 1;
  options.q_tile_rows = 0;
  EXPECT_EQ(MakePlan({}, kShape, {}, options).status().argument(), "options.q_tile_rows");
  EXPECT_EQ(MakePlan({}, {7, 2, 64, 16}, {}, {.parts = 1}).status().argument(), "q_heads");
}

}  // namespace
}  // namespace quire::kernels::testing
