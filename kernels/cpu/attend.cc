#include "kernels/cpu/attend.h"

#include "hwy/targets.h"

namespace quire::kernels::cpu {
namespace {

#if HWY_TARGETS & HWY_AVX3_DL
// Highway does not ask for AVX512_BF16 before it chooses its best target. Before any dispatch.
const bool best_target_limited = [] {
  const bool usable = __builtin_cpu_supports("avx512bf16");
  if (!usable) hwy::DisableTargets(HWY_AVX3_DL);
  return !usable;
}();
#endif

}  // namespace

void Attend(const AttentionCall& call, const AttentionTask& task, AttentionScratch& scratch) {
  switch (call.pool.layout.dtype) {
    case DType::kF32:
      return AttendF32(call, task, scratch);
    case DType::kF16:
      return AttendF16(call, task, scratch);
    case DType::kBF16:
      return AttendBf16(call, task, scratch);
    case DType::kE4M3:
      return AttendE4m3(call, task, scratch);
    case DType::kI8:
      return AttendI8(call, task, scratch);
  }
}

}  // namespace quire::kernels::cpu
