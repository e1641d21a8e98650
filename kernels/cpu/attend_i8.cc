#define QUIRE_STORED_TYPE DType::kI8
#define QUIRE_ATTEND AttendI8
#include "kernels/cpu/attend_stored.inc"
