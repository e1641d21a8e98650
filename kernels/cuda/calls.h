// From validated arguments of backend.h to launches. Each call queues its work on the job's stream;
// failures stay in the job.
#ifndef QUIRE_KERNELS_CUDA_CALLS_H_
#define QUIRE_KERNELS_CUDA_CALLS_H_

#include <span>

#include "kernels/backend.h"
#include "kernels/cuda/args.h"
#include "kernels/cuda/job.h"

namespace quire::kernels::QUIRE_SIMT {

using device::AttentionArgs;

void RunAttention(Job& job, const KvPoolView& pool, const BlockTableView& table,
                  const AttentionParams& params, const AttentionPlan& plan,
                  std::span<std::byte> workspace);

// Decode (append false) or append kernels of one head size.
template <int kDim>
void LaunchAttention(Job& job, bool append, int64_t ctas, const AttentionArgs& args);

void RunMerge(Job& job, const MergeParams& params);

// `nan_inputs`, zero before, may be null.
void RunWrite(Job& job, const KvPoolView& pool, const KvRows& rows, const TokenTargets& targets,
              uint64_t* nan_inputs);

// `orders` do not depend on each other. Layouts may differ in strides only.
void RunMoves(Job& job, const std::byte* from, const PagedKvLayout& from_layout, std::byte* to,
              const PagedKvLayout& to_layout, std::span<const CopyOrder> orders);

// Dense memory of GatherBlocks as a layout.
PagedKvLayout DenseLayout(const PagedKvLayout& layout);

void RunChecksums(Job& job, const KvPoolView& pool, uint64_t seed,
                  std::span<const ChecksumOrder> orders, std::span<ChecksumSums> sums);

}  // namespace quire::kernels::QUIRE_SIMT

#endif  // QUIRE_KERNELS_CUDA_CALLS_H_
