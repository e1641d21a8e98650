// Attend for each stored type, in sources of their own: they take long to compile.
#ifndef QUIRE_KERNELS_CPU_ATTEND_H_
#define QUIRE_KERNELS_CPU_ATTEND_H_

#include "kernels/cpu/attention.h"

namespace quire::kernels::cpu {

void AttendF32(const AttentionCall& call, const AttentionTask& task, AttentionScratch& scratch);
void AttendF16(const AttentionCall& call, const AttentionTask& task, AttentionScratch& scratch);
void AttendBf16(const AttentionCall& call, const AttentionTask& task, AttentionScratch& scratch);
void AttendE4m3(const AttentionCall& call, const AttentionTask& task, AttentionScratch& scratch);
void AttendI8(const AttentionCall& call, const AttentionTask& task, AttentionScratch& scratch);

}  // namespace quire::kernels::cpu

#endif  // QUIRE_KERNELS_CPU_ATTEND_H_
