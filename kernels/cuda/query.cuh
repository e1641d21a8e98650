// Query rows as a warp holds them: which keys each sees, its fragments, and how its products become
// exponents. The warp holds 16 rows; lane l has rows l / 4 and l / 4 + 8 in all fragments.
#ifndef QUIRE_KERNELS_CUDA_QUERY_CUH_
#define QUIRE_KERNELS_CUDA_QUERY_CUH_

#include "kernels/cuda/frag.cuh"

namespace quire::kernels::QUIRE_SIMT {

constexpr float kLog2E = 1.44269504f;
constexpr float kLn2 = 0.69314718f;
constexpr float kMinusInf = -__builtin_huge_valf();
constexpr int32_t kLeastInt = -2147483647 - 1;

// One query row as this lane sees it. Row r of an item is token r / group, head r % group.
struct QueryRow {
  int32_t q_row;  // of q; -1: padding
  int32_t head;
};

// Keys lower..upper - 1 are visible, and those before keep_first.
struct KeySpan {
  int32_t lower;
  int32_t upper;
};

// How a product of query and key becomes an exponent: exp2((score - max) * unit).
struct ScoreRule {
  bool plain;     // score = product, everything is in unit
  float scale;    // with k_scale
  float unit;     // to log2
  float natural;  // to the natural logarithm
};

SIMT_DEVICE ScoreRule RuleOf(const AttentionArgs& args, int kv_head) {
  ScoreRule rule;
  rule.scale = args.scale * args.k_scale[kv_head];
  rule.plain = rule.scale > 0 && args.softcap == 0 && args.alibi_slopes == nullptr &&
               args.layout.scale_kind != ScaleKind::kPerToken;
  rule.natural = rule.plain ? rule.scale : 1.0f;
  rule.unit = rule.natural * kLog2E;
  return rule;
}

SIMT_DEVICE QueryRow RowOf(const AttentionArgs& args, const AttentionItem& item, int kv_head,
                           int row) {
  const int token = row / args.group;
  if (token >= item.q_tokens) return {-1, 0};
  return {static_cast<int32_t>(item.q_row) + token, kv_head * args.group + row % args.group};
}

SIMT_DEVICE KeySpan SpanOf(const AttentionArgs& args, const AttentionItem& item,
                           const QueryRow& row) {
  if (row.q_row < 0) return {0, kLeastInt};
  const int32_t position = args.positions[row.q_row];
  KeySpan span{kLeastInt, item.kv_end};
  if (args.causal && position < item.kv_end) span.upper = position + 1;
  if (args.window_left >= 0 && position >= kLeastInt + args.window_left) {
    span.lower = position - args.window_left;
  }
  return span;
}

SIMT_DEVICE float LoadQueryFloat(const AttentionArgs& args, const QueryRow& row, int dim) {
  if (row.q_row < 0) return 0.0f;
  const int64_t at = row.q_row * args.q.row_stride + row.head * args.q.head_stride + dim;
  if (args.q.dtype == DType::kF32) return reinterpret_cast<const float*>(args.q.data)[at];
  const uint16_t half = reinterpret_cast<const uint16_t*>(args.q.data)[at];
  return args.q.dtype == DType::kBF16 ? Bf16ToFloat(half) : F16ToFloat(half);
}

// The A fragment of one step; with `rest`, what rounding to the mma type left over.
template <typename T>
SIMT_DEVICE void LoadQuery(const AttentionArgs& args, const QueryRow* rows, int step, bool rest,
                           uint32_t* a) {
  SIMT_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int dim = T::PairDim(step, i / 2);
    const float low = LoadQueryFloat(args, rows[i % 2], dim);
    const float high = LoadQueryFloat(args, rows[i % 2], dim + 1);
    a[i] = T::Pack(low, high);
    if (rest) a[i] = T::Pack(low - T::Unpack(a[i]), high - T::Unpack(a[i] >> 16));
  }
}

// Whether the mma type cannot hold q: a second product then adds the rest.
template <typename T>
SIMT_DEVICE bool IsWide(const AttentionArgs& args) {
  return args.q.dtype == DType::kF32 || (args.q.dtype == DType::kF16 && T::kType == DType::kBF16);
}

// The query side of a warp. Registers are short: what few tiles need is computed again from `item`.
template <typename T>
struct WarpQuery {
  const AttentionItem* item;
  int first_row;
  KeySpan spans[2];
  bool plain;
  float unit;
  const std::byte* shared;  // this lane's fragments of the first steps
  Vec16 fragments[T::kSteps - T::kSharedSteps + 1];
};

// Row r (0 or 1) of this lane.
template <typename T>
SIMT_DEVICE QueryRow RowOf(const AttentionArgs& args, const WarpQuery<T>& query, int r) {
  return RowOf(args, *query.item, KvHead(args), query.first_row + Lane() / 4 + 8 * r);
}

// `shared` is kQueryBytes that live as long as the query. The other fragments pass through
// `scratch`, the memory of a tile that is this warp's to use: the conversion may then be a loop,
// which an array in registers would not allow. A lane reads what it wrote itself.
template <typename T>
SIMT_DEVICE void Prepare(const AttentionArgs& args, const AttentionItem& item, int kv_head,
                         int first_row, std::byte* shared, std::byte* scratch,
                         WarpQuery<T>& query) {
  static_assert(T::kSteps * T::kStepBytes <= T::kTileBytes);
  query.item = &item;
  query.first_row = first_row;
  const QueryRow rows[2] = {RowOf(args, query, 0), RowOf(args, query, 1)};
  query.spans[0] = SpanOf(args, item, rows[0]);
  query.spans[1] = SpanOf(args, item, rows[1]);
  const ScoreRule rule = RuleOf(args, kv_head);
  query.plain = rule.plain;
  query.unit = rule.unit;
  query.shared = shared + static_cast<size_t>(Lane()) * sizeof(Vec16);
  std::byte* const own = scratch + static_cast<size_t>(Lane()) * sizeof(Vec16);
  SIMT_NO_UNROLL
  for (int step = 0; step < T::kSteps; ++step) {
    Vec16 fragment;
    LoadQuery<T>(args, rows, step, false, fragment.x);
    std::byte* const to =
        step < T::kSharedSteps ? shared + static_cast<size_t>(Lane()) * sizeof(Vec16) : own;
    Store16(to + step * T::kStepBytes, fragment);
  }
  SIMT_UNROLL
  for (int step = T::kSharedSteps; step < T::kSteps; ++step) {
    query.fragments[step - T::kSharedSteps] = Load16(own + step * T::kStepBytes);
  }
  SyncWarp();  // before other lanes load a tile over it
}

// The A fragment of a step.
template <typename T>
SIMT_DEVICE Vec16 FragmentOf(const WarpQuery<T>& query, int step) {
  if (step < T::kSharedSteps) return Load16(query.shared + step * T::kStepBytes);
  return query.fragments[step - T::kSharedSteps];
}

}  // namespace quire::kernels::QUIRE_SIMT

#endif  // QUIRE_KERNELS_CUDA_QUERY_CUH_
