#define QUIRE_STORED_TYPE DType::kF16
#define QUIRE_ATTEND AttendF16
#include "kernels/cpu/attend_stored.inc"
