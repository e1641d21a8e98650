#include "cache_service/engine/step_identity.h"

#include <utility>

#include "absl/hash/hash.h"
#include "absl/types/span.h"
#include "cache_service/engine/overloaded.h"

namespace quire {
namespace {

template <typename T>
absl::Span<const T> AsSpan(std::span<const T> span) {
  return absl::Span<const T>(span.data(), span.size());
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
  state = H::combine(std::move(state), op.sequence, AsSpan(op.tokens), op.recompute_tail,
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
                       return H::combine(std::move(state), AsSpan(op.sequences),
                                         AsSpan(op.start_lengths), AsSpan(op.tokens),
                                         AsSpan(op.token_counts), op.ahead, AsSpan(op.aheads));
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
                                         AsSpan(op.children));
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
