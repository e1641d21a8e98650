// Moving block content on the CPU: block to block, and to and from dense memory.
#ifndef QUIRE_KERNELS_CPU_COPY_H_
#define QUIRE_KERNELS_CPU_COPY_H_

#include <span>
#include <vector>

#include "kernels/backend.h"

namespace quire::kernels::cpu {

// First `tokens` slots with their scales.
void CopyBlock(const KvPoolView& from, int32_t source, const KvPoolView& to, int32_t destination,
               int64_t tokens);

// The dense form of backend.h's GatherBlocks.
void GatherBlock(const KvPoolView& pool, int32_t block, std::byte* destination);
void ScatterBlock(const KvPoolView& pool, int32_t block, const std::byte* source);

// Where to cut the list so that the orders of a piece can run in any order or at once. Entries are
// begin indices, then orders.size().
std::vector<size_t> CutIntoWaves(std::span<const CopyOrder> orders);

}  // namespace quire::kernels::cpu

#endif  // QUIRE_KERNELS_CPU_COPY_H_
