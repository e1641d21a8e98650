#define QUIRE_STORED_TYPE DType::kE4M3
#define QUIRE_ATTEND AttendE4m3
#include "kernels/cpu/attend_stored.inc"
