// The first correct attention on the CPU: plain fp32 loops, one row at a time, no vectors by hand.
// Kept to measure against.
#ifndef QUIRE_TESTS_KERNELS_BENCH_FIRST_VERSION_H_
#define QUIRE_TESTS_KERNELS_BENCH_FIRST_VERSION_H_

#include "kernels/backend.h"

namespace quire::kernels::bench {

// Causal attention with fp32 q and out; no window, scales, sinks or caps.
void FirstVersionAttention(const KvPoolView& pool, const BlockTableView& table,
                           const AttentionParams& params);

}  // namespace quire::kernels::bench

#endif  // QUIRE_TESTS_KERNELS_BENCH_FIRST_VERSION_H_
