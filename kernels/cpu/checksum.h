// Content checksum of one block on the CPU.
#ifndef QUIRE_KERNELS_CPU_CHECKSUM_H_
#define QUIRE_KERNELS_CPU_CHECKSUM_H_

#include "kernels/backend.h"

namespace quire::kernels::cpu {

ChecksumSums ChecksumBlock(const KvPoolView& pool, uint64_t seed, const ChecksumOrder& order);

}  // namespace quire::kernels::cpu

#endif  // QUIRE_KERNELS_CPU_CHECKSUM_H_
