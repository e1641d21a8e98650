#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attend_i8.cc"
#include "hwy/foreach_target.h"
// After foreach_target:
#include "hwy/highway.h"
#include "kernels/cpu/attend-inl.h"
#include "kernels/cpu/attend.h"

QUIRE_BEFORE_NAMESPACE();

namespace quire::kernels::cpu {
namespace HWY_NAMESPACE {
namespace {

void AttendForTarget(const AttentionCall& call, const AttentionTask& task,
                     AttentionScratch& scratch) {
  AttendStored<DType::kI8>(call, task, scratch);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace quire::kernels::cpu

HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire::kernels::cpu {
namespace {
HWY_EXPORT(AttendForTarget);
}  // namespace

void AttendI8(const AttentionCall& call, const AttentionTask& task, AttentionScratch& scratch) {
  HWY_DYNAMIC_DISPATCH(AttendForTarget)(call, task, scratch);
}

}  // namespace quire::kernels::cpu
#endif  // HWY_ONCE
