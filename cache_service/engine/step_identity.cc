#include "cache_service/engine/step_identity.h"

#include <array>
#include <cstring>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/types/span.h"
#include "cache_service/engine/content.h"
#include "cache_service/engine/overloaded.h"

namespace quire {
namespace {

// Sums, sums of sums and sums of those, as Fletcher's, of a column over eight lanes of 64 bits: a
// prompt may be long, and it is hashed for the sake of a repeat that hardly ever comes. Any three
// changes of ids below 2^18 show within 2^18 tokens; others would have to cancel in all three.
using ColumnSums = std::array<TokenLanes, 12>;

constexpr size_t kRowTokens = 16;

ColumnSums SumsOf(const TokenId* tokens, size_t rows) {
  // Each by its name, so that they stay in registers.
  TokenLanes a{}, b{}, c{}, d{}, a2{}, b2{}, c2{}, d2{}, a3{}, b3{}, c3{}, d3{};
  for (; rows > 0; --rows, tokens += kRowTokens) {
    a += LoadTokens(tokens);
    b += LoadTokens(tokens + 4);
    c += LoadTokens(tokens + 8);
    d += LoadTokens(tokens + 12);
    a2 += a;
    b2 += b;
    c2 += c;
    d2 += d;
    a3 += a2;
    b3 += b2;
    c3 += c2;
    d3 += d2;
  }
  return {a, b, c, d, a2, b2, c2, d2, a3, b3, c3, d3};
}

template <typename T>
struct Column {
  std::span<const T> values;

  template <typename H>
  friend H AbslHashValue(H state, const Column& column) {
    constexpr size_t kRow = kRowTokens * sizeof(TokenId) / sizeof(T);
    const size_t rows = column.values.size() / kRow;
    const ColumnSums sums = SumsOf(reinterpret_cast<const TokenId*>(column.values.data()), rows);
    state = H::combine_contiguous(
        std::move(state), reinterpret_cast<const unsigned char*>(sums.data()), sizeof(sums));
    const std::span<const T> rest = column.values.subspan(rows * kRow);
    return H::combine(std::move(state), column.values.size(),
                      absl::Span<const T>(rest.data(), rest.size()));
  }
};

template <typename T>
Column<T> Whole(std::span<const T> span) {
  return {span};
}

template <typename H>
H HashRanges(H state, const std::vector<RetentionRange>& ranges) {
  for (const RetentionRange& range : ranges) {
    state = H::combine(std::move(state), range.start, range.end, range.priority,
                       range.duration.value_or(Duration(-1)).count());
  }
  return H::combine(std::move(state), ranges.size());
}

template <typename H>
H HashBegin(H state, const BeginOp& op) {
  state = H::combine(std::move(state), op.sequence, Whole(op.tokens), op.recompute_tail,
                     op.allocate_tokens.has_value(), op.allocate_tokens.value_or(0),
                     op.skip_cache_read, op.reserve_tokens, op.reserve_sequences);
  const NamespaceParts& parts = op.namespace_parts;
  state = H::combine(std::move(state), parts.adapter, parts.salt, parts.tenant,
                     parts.weights_version, op.digests.size());
  for (const DigestRange& range : op.digests) {
    state = H::combine(std::move(state), range.start, range.end, range.digest);
  }
  return HashRanges(std::move(state), op.retention);
}

// Identity of a step's operations: a repeat must have the same.
struct OperationsIdentity {
  const StepParams& params;

  template <typename H>
  friend H AbslHashValue(H state, const OperationsIdentity& identity) {
    state = H::combine(std::move(state), identity.params.all_or_nothing,
                       identity.params.operations.size());
    for (const Operation& operation : identity.params.operations) {
      state = H::combine(std::move(state), operation.index());
      state = std::visit(
          Overloaded{[&](const BeginOp& op) { return HashBegin(std::move(state), op); },
                     [&](const AdvanceOp& op) {
                       return H::combine(std::move(state), Whole(op.sequences),
                                         Whole(op.start_lengths), Whole(op.tokens),
                                         Whole(op.token_counts), op.ahead, Whole(op.aheads));
                     },
                     [&](const ExtendOp& op) {
                       return H::combine(std::move(state), op.sequence, op.start_length, op.slots);
                     },
                     [&](const CommitOp& op) {
                       return H::combine(std::move(state), op.sequence, op.start_length,
                                         op.committed_length);
                     },
                     [&](const ForkOp& op) {
                       return H::combine(std::move(state), op.sequence, op.start_length,
                                         Whole(op.children));
                     },
                     [&](const TruncateOp& op) {
                       return H::combine(std::move(state), op.sequence, op.start_length, op.length);
                     },
                     [&](const FinishOp& op) {
                       return HashRanges(H::combine(std::move(state), op.sequence, op.drop),
                                         op.retention);
                     }},
          operation);
    }
    return state;
  }
};

}  // namespace

uint64_t Fingerprint(const StepParams& params) {
  return absl::Hash<OperationsIdentity>()(OperationsIdentity{params});
}

}  // namespace quire
