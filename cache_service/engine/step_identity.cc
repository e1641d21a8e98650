#include "cache_service/engine/step_identity.h"

#if defined(__x86_64__)
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

#include <span>
#include <utility>

#include "absl/hash/hash.h"
#include "cache_service/engine/overloaded.h"

namespace quire {
namespace {

// A prompt may be long, and it is hashed for the sake of a repeat that hardly ever comes: XXH3 with
// the widest vectors of the machine.
template <typename T>
struct Column {
  std::span<const T> values;

  template <typename H>
  friend H AbslHashValue(H state, const Column& column) {
    return H::combine(std::move(state), column.values.size(),
                      XXH3_64bits(column.values.data(), column.values.size_bytes()));
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
