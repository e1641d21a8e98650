#include "kernels/plan.h"

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/hash.h"

namespace quire::kernels {
namespace {

using std::to_string;

constexpr int32_t kMaxParts = 1 << 20;
constexpr int64_t kMaxRows = int64_t{1} << 31;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t TilesOf(const KeyRange& range) {
  return range.empty() ? 0 : CeilDiv(range.end - range.begin, kPlanTileTokens);
}

// Query tokens that are planned together, with all they see.
struct Unit {
  int32_t sequence;
  int32_t q_tokens;
  int64_t q_row;
  VisibleKeys keys;
};

// Fills part after part with pieces of units, in order.
class Filler {
 public:
  Filler(const PlanOptions& options, int32_t group, int64_t payload, AttentionPlan* plan)
      : options_(options), group_(group), payload_(payload), room_(payload), plan_(plan) {
    plan_->part_begin.push_back(0);
  }

  void Add(const Unit& unit) {
    AddRange(unit, unit.keys.kept);
    AddRange(unit, unit.keys.rest);
  }

  void Finish() {
    if (plan_->part_begin.back() != ItemCount()) plan_->part_begin.push_back(ItemCount());
  }

 private:
  int32_t ItemCount() const { return static_cast<int32_t>(plan_->items.size()); }

  void AddRange(const Unit& unit, KeyRange range) {
    while (!range.empty()) {
      const int64_t end = options_.fixed_split > 0 ? FixedEnd(range) : BalancedEnd(unit, range);
      PlanItem item;
      item.sequence = unit.sequence;
      item.q_tokens = unit.q_tokens;
      item.q_row = unit.q_row;
      item.kv_begin = range.begin;
      item.kv_end = end;
      plan_->items.push_back(item);
      room_ -= TilesOf({range.begin, end}) + options_.overhead_tiles;
      range.begin = end;
    }
  }

  int64_t FixedEnd(const KeyRange& range) {
    if (room_ <= options_.overhead_tiles) OpenPart();
    return std::min(range.end, (range.begin / options_.fixed_split + 1) * options_.fixed_split);
  }

  int64_t BalancedEnd(const Unit& unit, const KeyRange& range) {
    const int64_t left = TilesOf(range);
    const int64_t rows = int64_t{unit.q_tokens} * group_;
    const int64_t least = CeilDiv(rows * options_.min_piece_per_row, kPlanTileTokens);
    if (room_ - options_.overhead_tiles < std::min(left, least)) OpenPart();
    const int64_t take = std::max(room_ - options_.overhead_tiles, least);
    if (IsLastPart() || left - take < least) return range.end;
    return range.begin + take * kPlanTileTokens;
  }

  bool IsLastPart() const {
    return static_cast<int32_t>(plan_->part_begin.size()) >= options_.parts;
  }

  void OpenPart() {
    if (IsLastPart() || plan_->part_begin.back() == ItemCount()) return;
    plan_->part_begin.push_back(ItemCount());
    room_ = payload_;
  }

  const PlanOptions& options_;
  const int32_t group_;
  const int64_t payload_;
  int64_t room_;
  AttentionPlan* plan_;
};

Status CheckOptions(const PlanShape& shape, const PlanOptions& options) {
  if (options.parts < 1 || options.parts > kMaxParts) {
    return Status::Invalid("options.parts",
                           "parts is " + to_string(options.parts) + ", must be 1..2^20");
  }
  if (options.q_tile_rows < 1) {
    return Status::Invalid(
        "options.q_tile_rows",
        "q_tile_rows is " + to_string(options.q_tile_rows) + ", must be positive");
  }
  const std::pair<const char*, int64_t> not_negative[] = {
      {"options.fixed_split", options.fixed_split},
      {"options.overhead_tiles", options.overhead_tiles},
      {"options.min_piece_per_row", options.min_piece_per_row}};
  for (const auto& [argument, value] : not_negative) {
    if (value < 0) return Status::Invalid(argument, to_string(value) + " is negative");
  }
  if (shape.kv_heads < 1 || shape.q_heads < 1 || shape.q_heads % shape.kv_heads != 0) {
    return Status::Invalid("q_heads", to_string(shape.q_heads) + " query heads over " +
                                          to_string(shape.kv_heads) + " KV heads");
  }
  return Status::Ok();
}

Status CheckSequences(std::span<const PlanSequence> sequences) {
  for (size_t i = 0; i < sequences.size(); ++i) {
    const PlanSequence& s = sequences[i];
    if (s.q_tokens < 0 || s.q_row < 0 || s.kv_begin < 0 || s.kv_end < 0 ||
        std::max({s.q_row + s.q_tokens, s.kv_begin, s.kv_end}) > kMaxRows) {
      return Status::Invalid("sequences", "sequence " + to_string(i) + " has " +
                                              to_string(s.q_tokens) + " queries and keys " +
                                              to_string(s.kv_begin) + ".." + to_string(s.kv_end));
    }
  }
  return Status::Ok();
}

void AppendUnits(std::span<const PlanSequence> sequences, const PlanShape& shape,
                 const AttentionMask& mask, const PlanOptions& options, std::vector<Unit>* units) {
  const int64_t tile = std::max(1, options.q_tile_rows / (shape.q_heads / shape.kv_heads));
  for (size_t i = 0; i < sequences.size(); ++i) {
    const PlanSequence& s = sequences[i];
    for (int64_t q = 0; q < s.q_tokens; q += tile) {
      const int64_t count = std::min(tile, s.q_tokens - q);
      const int64_t first = s.first_position + q;
      units->push_back({static_cast<int32_t>(i), static_cast<int32_t>(count), s.q_row + q,
                        FindVisibleKeys(s, mask, first, first + count - 1, shape.block_tokens)});
    }
  }
}

void FillParts(const std::vector<Unit>& units, const PlanShape& shape, const PlanOptions& options,
               AttentionPlan* plan) {
  int64_t load = 0;
  for (const Unit& unit : units) {
    const int64_t tiles = TilesOf(unit.keys.kept) + TilesOf(unit.keys.rest);
    if (tiles > 0) load += tiles + options.overhead_tiles;
  }
  const int64_t payload = CeilDiv(load, options.parts) + options.overhead_tiles;
  Filler filler(options, shape.q_heads / shape.kv_heads, payload, plan);
  for (const Unit& unit : units) filler.Add(unit);
  filler.Finish();
}

int64_t TakeWorkspaceRows(PlanItem& item, AttentionPlan* plan) {
  item.partial_row = plan->partial_rows;
  plan->partial_rows += item.q_tokens;
  return item.partial_row;
}

// Units in one piece write their output; others get a merge, also those that see nothing.
void AddMerges(const std::vector<Unit>& units, AttentionPlan* plan) {
  size_t next = 0;
  for (const Unit& unit : units) {
    const size_t first = next;
    while (next < plan->items.size() && plan->items[next].q_row == unit.q_row &&
           plan->items[next].sequence == unit.sequence) {
      ++next;
    }
    if (next - first == 1) continue;
    PlanMerge merge{unit.q_row, unit.q_tokens, static_cast<int32_t>(plan->merge_rows.size()), 0};
    for (size_t i = first; i < next; ++i) {
      plan->merge_rows.push_back(TakeWorkspaceRows(plan->items[i], plan));
    }
    merge.last_part = static_cast<int32_t>(plan->merge_rows.size());
    plan->merges.push_back(merge);
  }
}

// One merge per query token, over every item that holds the token.
void AddMergesPerToken(AttentionPlan* plan) {
  std::vector<int32_t> fill(static_cast<size_t>(plan->q_rows) + 1, 0);
  for (PlanItem& item : plan->items) {
    TakeWorkspaceRows(item, plan);
    for (int64_t r = 0; r < item.q_tokens; ++r) ++fill[static_cast<size_t>(item.q_row + r + 1)];
  }
  for (size_t row = 1; row < fill.size(); ++row) fill[row] += fill[row - 1];
  plan->merge_rows.resize(static_cast<size_t>(fill.back()));
  for (size_t row = 0; row + 1 < fill.size(); ++row) {
    plan->merges.push_back({static_cast<int64_t>(row), 1, fill[row], fill[row + 1]});
  }
  for (const PlanItem& item : plan->items) {
    for (int64_t r = 0; r < item.q_tokens; ++r) {
      int32_t& slot = fill[static_cast<size_t>(item.q_row + r)];
      plan->merge_rows[static_cast<size_t>(slot++)] = item.partial_row + r;
    }
  }
}

void Seal(std::span<const PlanSequence> sequences, const PlanShape& shape,
          const AttentionMask& mask, AttentionPlan* plan) {
  plan->workspace_bytes = plan->partial_rows * shape.q_heads * (int64_t{shape.head_dim} + 1) * 4;
  plan->inputs = PlanInputs(sequences, shape, mask);
  plan->sequences = static_cast<int32_t>(sequences.size());
}

int64_t LastRow(std::span<const PlanSequence> sequences) {
  int64_t rows = 0;
  for (const PlanSequence& s : sequences) rows = std::max(rows, s.q_row + s.q_tokens);
  return rows;
}

}  // namespace

uint64_t PlanInputs(std::span<const PlanSequence> sequences, const PlanShape& shape,
                    const AttentionMask& mask) {
  uint64_t hash = 0;
  const auto add = [&hash](int64_t value) {
    hash = Mix64(hash + kGolden + static_cast<uint64_t>(value));
  };
  for (int64_t v : {shape.q_heads, shape.kv_heads, shape.head_dim, shape.block_tokens,
                    mask.causal ? 1 : 0, mask.window_left, mask.keep_first}) {
    add(v);
  }
  for (const PlanSequence& s : sequences) {
    add(s.q_row);
    add(s.first_position);
    add(s.q_tokens);
    add(s.kv_end);
  }
  return hash;
}

VisibleKeys FindVisibleKeys(const PlanSequence& s, const AttentionMask& mask, int64_t first,
                            int64_t last, int32_t block_tokens) {
  VisibleKeys keys;
  const int64_t end = mask.causal ? std::min(s.kv_end, last + 1) : s.kv_end;
  int64_t begin = s.kv_begin;
  if (mask.window_left >= 0) {
    const int64_t start = std::max<int64_t>(0, first - mask.window_left);
    begin = std::max(begin, start / block_tokens * block_tokens);
    keys.kept = {s.kv_begin, std::min<int64_t>(mask.keep_first, end)};
    if (keys.kept.end >= begin) {
      begin = s.kv_begin;
      keys.kept = {};
    }
  }
  keys.rest = {begin, end};
  return keys;
}

Result<AttentionPlan> MakePlan(std::span<const PlanSequence> sequences, const PlanShape& shape,
                               const AttentionMask& mask, const PlanOptions& options) {
  if (Status s = CheckOptions(shape, options); !s.ok()) return s;
  if (Status s = CheckSequences(sequences); !s.ok()) return s;
  AttentionPlan plan;
  plan.q_rows = LastRow(sequences);
  std::vector<Unit> units;
  AppendUnits(sequences, shape, mask, options, &units);
  FillParts(units, shape, options, &plan);
  AddMerges(units, &plan);
  Seal(sequences, shape, mask, &plan);
  return plan;
}

Result<AttentionPlan> MakeCascadePlan(std::span<const PlanSequence> sequences, int64_t prefix,
                                      const PlanShape& shape, const AttentionMask& mask,
                                      const PlanOptions& options) {
  if (Status s = CheckOptions(shape, options); !s.ok()) return s;
  if (Status s = CheckSequences(sequences); !s.ok()) return s;
  AttentionPlan plan;
  plan.q_rows = LastRow(sequences);
  plan.shared_prefix = prefix;
  std::vector<PlanSequence> all(sequences.begin(), sequences.end());
  for (PlanSequence& s : all) s.kv_begin = prefix;
  // All queries stand behind the prefix, so the mask hides none of it from any of them.
  all.push_back({0, plan.q_rows, prefix, 0, prefix});
  AttentionMask open = mask;
  open.window_left = -1;
  std::vector<Unit> units;
  AppendUnits(all, shape, open, options, &units);
  FillParts(units, shape, options, &plan);
  AddMergesPerToken(&plan);
  Seal(sequences, shape, mask, &plan);
  return plan;
}

bool CascadePays(int64_t batch, int64_t q_tokens, int64_t prefix, int32_t group,
                 int64_t element_bytes) {
  // Per KV head and head_dim: K and V saved, against two fp32 rows a query, written and read.
  const int64_t saved = (batch - 1) * prefix * 2 * element_bytes;
  const int64_t extra = batch * q_tokens * group * 2 * 4 * 2;
  return saved > 2 * extra;
}

}  // namespace quire::kernels
