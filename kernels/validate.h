// Checks that every backend makes before it reads or writes. Pure; host memory only.
//
// Whoever keeps tables on a device runs these once per table version on the host copy.
#ifndef QUIRE_KERNELS_VALIDATE_H_
#define QUIRE_KERNELS_VALIDATE_H_

#include <span>
#include <vector>

#include "kernels/backend.h"

namespace quire::kernels {

Status ValidatePool(const KvPoolView& pool);

// What a plan depends on: heads, mask, lengths, and every table entry that a query can see. A block
// id must be inside the pool, a length inside the table.
Status ValidateTables(const KvPoolView& pool, const BlockTableView& table,
                      const AttentionParams& params);

// ValidateTables, and the tensors, strides, layer and scales of an attention call.
Status ValidateAttention(const KvPoolView& pool, const BlockTableView& table,
                         const AttentionParams& params);

// That `plan` was made for these tables and the workspace holds its partial states.
Status ValidatePlan(const KvPoolView& pool, const BlockTableView& table,
                    const AttentionParams& params, const AttentionPlan& plan,
                    std::span<std::byte> workspace);

// That all sequences begin with the same blocks for `prefix_tokens` and are at least as long, and
// that every query stands behind them.
Status ValidatePrefix(const KvPoolView& pool, const BlockTableView& table, int64_t prefix_tokens,
                      const AttentionParams& params);

Status ValidateWrite(const KvPoolView& pool, const KvRows& rows, const TokenTargets& targets);
Status ValidateMerge(const MergeParams& params);
Status ValidateCopies(const KvPoolView& pool, std::span<const CopyOrder> orders);
Status ValidateGather(const KvPoolView& pool, std::span<const int32_t> ids,
                      std::span<const std::byte> destination);
Status ValidateScatter(const KvPoolView& pool, std::span<const int32_t> ids,
                       std::span<const std::byte> source);
Status ValidateTransfer(const KvPoolView& source, const KvPoolView& destination,
                        std::span<const BlockPair> pairs);
Status ValidateChecksums(const KvPoolView& pool, std::span<const ChecksumOrder> orders,
                         size_t sums);

// Needs a validated call.
std::vector<PlanSequence> MakeSequences(const BlockTableView& table, const AttentionParams& params);
PlanShape MakeShape(const KvPoolView& pool, const AttentionParams& params);

// The shared way from arguments to a plan; `parts` is used where options.parts is 0.
Result<AttentionPlan> PlanAttention(const KvPoolView& pool, const BlockTableView& table,
                                    const AttentionParams& params, PlanOptions options, int parts);
Result<AttentionPlan> PlanSharedPrefix(const KvPoolView& pool, const BlockTableView& table,
                                       int64_t prefix_tokens, const AttentionParams& params,
                                       PlanOptions options, int parts);

}  // namespace quire::kernels

#endif  // QUIRE_KERNELS_VALIDATE_H_
