#include <cmath>
#include <limits>
#include <vector>

#include "kernels/dtype.h"
#include "kernels/ref/reference.h"

namespace quire::kernels::ref {
namespace {

constexpr double kEmpty = -std::numeric_limits<double>::infinity();

// K and V of one (sequence, KV head), dequantised; keys that no query sees stay zero.
struct Keys {
  std::vector<double> k;
  std::vector<double> v;
};

struct Call {
  const KvPoolView& pool;
  const BlockTableView& table;
  const AttentionParams& params;
};

double ScaleOf(const Call& call, bool is_v, int64_t block, int64_t head, int64_t slot) {
  const PagedKvLayout& layout = call.pool.layout;
  const float* given = is_v ? call.params.v_scale : call.params.k_scale;
  switch (layout.scale_kind) {
    case ScaleKind::kNone:
      return 1.0;
    case ScaleKind::kPerTensor:
      return double{given[0]};
    case ScaleKind::kPerHead:
      return double{given[head]};
    case ScaleKind::kPerToken:
      break;
  }
  const int64_t at = layout.ScaleOffset(block, call.params.layer, head, is_v, slot);
  return double{LoadElement(DType::kF32, call.pool.base, at)};
}

bool Sees(const AttentionMask& mask, int64_t query, int64_t key) {
  if (mask.causal && key > query) return false;
  if (mask.window_left < 0 || key < mask.keep_first) return true;
  return key >= query - mask.window_left;
}

bool AnySees(const AttentionMask& mask, int64_t first, int64_t last, int64_t key) {
  for (int64_t query = first; query <= last; ++query) {
    if (Sees(mask, query, key)) return true;
  }
  return false;
}

Keys LoadKeys(const Call& call, int64_t sequence, int64_t head, int64_t first, int64_t last) {
  const PagedKvLayout& layout = call.pool.layout;
  const int64_t len = call.table.lens[sequence];
  const int64_t d = layout.head_dim;
  Keys keys;
  keys.k.assign(static_cast<size_t>(len * d), 0.0);
  keys.v.assign(static_cast<size_t>(len * d), 0.0);
  for (int64_t t = 0; t < len; ++t) {
    if (!AnySees(call.params.mask, first, last, t)) continue;
    const int64_t slot = t % layout.block_tokens();
    const int64_t block =
        call.table.ids[sequence * call.table.row_stride + t / layout.block_tokens()];
    for (const bool is_v : {false, true}) {
      const double scale = ScaleOf(call, is_v, block, head, slot);
      const int64_t row = layout.RowOffset(block, call.params.layer, head, is_v, slot);
      double* to = (is_v ? keys.v : keys.k).data() + t * d;
      for (int64_t i = 0; i < d; ++i) {
        to[i] = scale * double{LoadElement(layout.dtype, call.pool.base, row + i)};
      }
    }
  }
  return keys;
}

double Score(const AttentionParams& p, const double* q, const double* k, int64_t d, int64_t head,
             int64_t distance) {
  double dot = 0;
  for (int64_t i = 0; i < d; ++i) dot += q[i] * k[i];
  double score = dot * double{p.scale};
  if (p.softcap > 0) score = double{p.softcap} * std::tanh(score / double{p.softcap});
  if (p.alibi_slopes != nullptr) {
    score += double{p.alibi_slopes[head]} * static_cast<double>(distance);
  }
  return score;
}

void StoreRow(const AttentionParams& p, int64_t row, int64_t head, const std::vector<double>& out,
              double lse) {
  const int64_t base = row * p.out_row_stride + head * p.out_head_stride;
  for (size_t i = 0; i < out.size(); ++i) {
    StoreElement(p.out_dtype, p.out, base + static_cast<int64_t>(i), static_cast<float>(out[i]));
  }
  if (p.lse == nullptr) return;
  p.lse[row * p.lse_row_stride + head * p.lse_head_stride] = static_cast<float>(lse);
}

void AttendRow(const Call& call, const Keys& keys, int64_t len, int64_t row, int64_t head,
               int64_t position) {
  const AttentionParams& p = call.params;
  const int64_t d = call.pool.layout.head_dim;
  std::vector<double> q(static_cast<size_t>(d));
  for (int64_t i = 0; i < d; ++i) {
    q[static_cast<size_t>(i)] =
        double{LoadElement(p.q_dtype, p.q, row * p.q_row_stride + head * p.q_head_stride + i)};
  }
  std::vector<double> scores(static_cast<size_t>(len), kEmpty);
  double max = p.sinks != nullptr ? double{p.sinks[head]} : kEmpty;
  for (int64_t t = 0; t < len; ++t) {
    if (!Sees(p.mask, position, t)) continue;
    double& score = scores[static_cast<size_t>(t)];
    score = Score(p, q.data(), keys.k.data() + t * d, d, head, t - position);
    max = std::fmax(max, score);
  }
  std::vector<double> out(static_cast<size_t>(d), 0.0);
  if (max == kEmpty) return StoreRow(p, row, head, out, kEmpty);
  double sum = p.sinks != nullptr ? std::exp(double{p.sinks[head]} - max) : 0.0;
  for (int64_t t = 0; t < len; ++t) {
    if (!Sees(p.mask, position, t)) continue;
    const double weight = std::exp(scores[static_cast<size_t>(t)] - max);
    sum += weight;
    for (int64_t i = 0; i < d; ++i) {
      out[static_cast<size_t>(i)] += weight * keys.v[static_cast<size_t>(t * d + i)];
    }
  }
  for (double& value : out) value /= sum;
  StoreRow(p, row, head, out, max + std::log(sum));
}

}  // namespace

void Attention(const KvPoolView& pool, const BlockTableView& table, const AttentionParams& params) {
  const Call call{pool, table, params};
  const int64_t group = params.q_heads / pool.layout.kv_heads;
  for (int64_t s = 0; s < table.rows; ++s) {
    const int64_t begin = params.cu_q_lens != nullptr ? params.cu_q_lens[s] : s;
    const int64_t end = params.cu_q_lens != nullptr ? params.cu_q_lens[s + 1] : s + 1;
    const int64_t len = table.lens[s];
    const int64_t first = len - (end - begin);
    for (int64_t h = 0; begin < end && h < pool.layout.kv_heads; ++h) {
      const Keys keys = LoadKeys(call, s, h, first, len - 1);
      for (int64_t row = begin; row < end; ++row) {
        for (int64_t g = 0; g < group; ++g) {
          AttendRow(call, keys, len, row, h * group + g, first + row - begin);
        }
      }
    }
  }
}

void Merge(const MergeParams& p) {
  for (int64_t cell = 0; cell < p.rows * p.heads; ++cell) {
    const double sink = p.sinks != nullptr ? double{p.sinks[cell % p.heads]} : kEmpty;
    std::vector<double> lse(static_cast<size_t>(p.states));
    double max = sink;
    for (int64_t s = 0; s < p.states; ++s) {
      double value = double{p.partial_lse[s * p.rows * p.heads + cell]};
      if (std::isinf(value)) value = kEmpty;
      lse[static_cast<size_t>(s)] = value;
      max = std::fmax(max, value);
    }
    double sum = max == kEmpty ? 0.0 : std::exp(sink - max);
    std::vector<double> out(static_cast<size_t>(p.head_dim), 0.0);
    for (int64_t s = 0; s < p.states; ++s) {
      if (lse[static_cast<size_t>(s)] == kEmpty) continue;
      const double weight = std::exp(lse[static_cast<size_t>(s)] - max);
      sum += weight;
      const float* from = p.partial_out + (s * p.rows * p.heads + cell) * p.head_dim;
      for (size_t i = 0; i < out.size(); ++i) out[i] += weight * double{from[i]};
    }
    for (size_t i = 0; i < out.size(); ++i) {
      const double value = sum > 0 ? out[i] / sum : 0.0;
      StoreElement(p.out_dtype, p.out, cell * p.head_dim + static_cast<int64_t>(i),
                   static_cast<float>(value));
    }
    if (p.lse != nullptr) p.lse[cell] = static_cast<float>(sum > 0 ? max + std::log(sum) : kEmpty);
  }
}

}  // namespace quire::kernels::ref
