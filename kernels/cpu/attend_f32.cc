#define QUIRE_STORED_TYPE DType::kF32
#define QUIRE_ATTEND AttendF32
#include "kernels/cpu/attend_stored.inc"
