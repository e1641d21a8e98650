// The kernels as obvious loops, attention in fp64 on the stored bytes. Slow on purpose: this is
// what every other backend is compared with, so it shares no arithmetic with them.
#ifndef QUIRE_KERNELS_REF_REFERENCE_H_
#define QUIRE_KERNELS_REF_REFERENCE_H_

#include <memory>
#include <span>

#include "kernels/backend.h"

namespace quire::kernels::ref {

std::unique_ptr<Backend> MakeReferenceBackend();

// The parts of it; arguments are validated already.
void Attention(const KvPoolView& pool, const BlockTableView& table, const AttentionParams& params);
void Merge(const MergeParams& params);
// Returns NaN inputs met while quantising.
int64_t Write(const KvPoolView& pool, const KvRows& rows, const TokenTargets& targets);
void Copy(const KvPoolView& pool, const CopyOrder& order);
void Gather(const KvPoolView& pool, int32_t block, std::byte* destination);
void Scatter(const KvPoolView& pool, int32_t block, const std::byte* source);
ChecksumSums Checksum(const KvPoolView& pool, uint64_t seed, const ChecksumOrder& order);

}  // namespace quire::kernels::ref

#endif  // QUIRE_KERNELS_REF_REFERENCE_H_
