#include "kernels/backend.h"

#include <string>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cuda/make_backend.h"
#include "kernels/device_backend.h"
#include "kernels/hash.h"
#include "kernels/ref/reference.h"

namespace quire::kernels {

uint64_t ChecksumSeed(const PagedKvLayout& layout, uint64_t group_index) {
  uint64_t seed = 0;
  for (uint64_t x : {uint64_t{1}, static_cast<uint64_t>(layout.dtype),
                     static_cast<uint64_t>(layout.layers), static_cast<uint64_t>(layout.kv_heads),
                     static_cast<uint64_t>(layout.head_dim), group_index}) {
    seed = Mix64(seed + kGolden + x);
  }
  return seed;
}

ChecksumSums BindChecksum(const ChecksumSums& sums, uint64_t chain) {
  return {Mix64(sums[0] + Mix64(chain)), Mix64(sums[1] + Mix64(chain + 1))};
}

Result<std::unique_ptr<Backend>> CreateBackend(std::string_view name,
                                               const BackendOptions& options) {
  if (name == "reference") return ref::MakeReferenceBackend();
  if (name == "cpu") return cpu::MakeCpuBackend(options.threads);
  if (name == "cuda") {
    Result<std::unique_ptr<DeviceBackend>> device = CreateDeviceBackend();
    if (!device.ok()) return device.status();
    return std::unique_ptr<Backend>(std::move(*device));
  }
  return Status::Invalid("name", "no backend is called \"" + std::string(name) +
                                     "\"; there are \"cpu\", \"cuda\" and \"reference\"");
}

Result<std::unique_ptr<DeviceBackend>> CreateDeviceBackend() {
#ifdef QUIRE_HAVE_CUDA
  return cuda::MakeBackend();
#else
  return Status(StatusCode::kUnsupported, "name",
                "this build has no CUDA kernels: build with QUIRE_CUDA on and the CUDA toolkit");
#endif
}

}  // namespace quire::kernels
