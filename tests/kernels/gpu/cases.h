// What is measured on a device: decode, prefill, writes, copies. The device may be the emulator,
// with small sizes; that tests the bench itself.
#ifndef QUIRE_TESTS_KERNELS_GPU_CASES_H_
#define QUIRE_TESTS_KERNELS_GPU_CASES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/device_backend.h"
#include "tests/kernels/gpu/report.h"
#include "tests/kernels/testing/pool_fixture.h"

namespace quire::kernels::gpu {

struct DecodeShape {
  int32_t batch;
  int32_t tokens;
  DType dtype;
  int32_t block_tokens;
  bool layer_first;
};

// B 1/8/32/128 x 1K/4K/32K x bf16/e4m3 x N 16/64 x block-first/layer-first.
std::vector<DecodeShape> DecodeShapes();

struct BenchSizes {
  int32_t kv_heads = 8;
  int32_t group = 4;
  int32_t head_dim = 128;
  int32_t most_layers = 32;  // of a block; fewer where the pool is too small
  int64_t pool_bytes = int64_t{64} << 30;
  int32_t prefill_tokens = 8192;
  int32_t copy_blocks = 256;
  int repeats = 10;
};

// Device memory is allocated once, half as much again and again where it does not fit. `host` is
// the other end of offloads; both must outlive the bench, and `host` the backend. Not thread-safe.
class Bench {
 public:
  static Result<std::unique_ptr<Bench>> Create(DeviceBackend& backend, testing::Memory& host,
                                               const BenchSizes& sizes);
  ~Bench();

  // Of the machine, in bytes per second; shares are left out while these are 0.
  void SetCeilings(double read, double copy) {
    read_ceiling_ = read;
    copy_ceiling_ = copy;
  }

  Result<Record> Decode(const DecodeShape& shape);
  Result<Record> Prefill(DType dtype);
  // bf16 rows to a pool of `dtype`; the share is of the copy ceiling, as rows are read and written.
  Result<Record> Write(DType dtype, int32_t tokens);
  // Copy and checksum within the device, offload and onboard over the bus.
  Result<std::vector<Record>> CacheOps();

  std::byte* memory() { return pool_; }

  int64_t memory_bytes() const { return pool_bytes_; }

 private:
  struct Call;

  Bench(DeviceBackend& backend, testing::Memory& host, const BenchSizes& sizes)
      : backend_(backend), host_(host), sizes_(sizes) {}

  Result<KvPoolView> PoolFor(const DecodeShape& shape);
  Status Fill(DType dtype);
  Result<double> Attend(const KvPoolView& pool, Call& call);
  // Seconds per call of `queue(i)` on a stream of its own, once warm.
  Result<double> Time(const std::function<Status(int)>& queue);
  Result<Record> Transfers(const KvPoolView& from, const KvPoolView& to, const char* name);

  DeviceBackend& backend_;
  testing::Memory& host_;
  const BenchSizes sizes_;
  StreamId stream_ = kDefaultStream;
  std::byte* pool_ = nullptr;
  int64_t pool_bytes_ = 0;
  DType filled_ = DType::kF32;  // what the memory holds
  bool is_filled_ = false;
  double read_ceiling_ = 0;
  double copy_ceiling_ = 0;
};

}  // namespace quire::kernels::gpu

#endif  // QUIRE_TESTS_KERNELS_GPU_CASES_H_
