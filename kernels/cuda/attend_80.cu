#include "kernels/cuda/attend_dim.cuh"

namespace quire::kernels::QUIRE_SIMT {

template void LaunchAttention<80>(Job&, bool, int64_t, const AttentionArgs&);

}  // namespace quire::kernels::QUIRE_SIMT
