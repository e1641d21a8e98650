#define QUIRE_STORED_TYPE DType::kBF16
#define QUIRE_ATTEND AttendBf16
#include "kernels/cpu/attend_stored.inc"
