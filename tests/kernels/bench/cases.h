// What the parts of the bench share: options, a shape, and what was measured of it.
#ifndef QUIRE_TESTS_KERNELS_BENCH_CASES_H_
#define QUIRE_TESTS_KERNELS_BENCH_CASES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/backend.h"

namespace quire::kernels::bench {

struct Options {
  bool json = false;
  int rounds = 5;
  int64_t pool_mib = 512;
  std::string only;
};

struct Record {
  std::string name;
  std::vector<std::pair<std::string, double>> numbers;
};

struct Shape {
  DType dtype;
  int32_t group;
  int32_t block_tokens;
  int threads;
  int32_t head_dim = 128;
};

LayoutParams ParamsOf(const Shape& shape);
std::unique_ptr<Backend> Cpu(int threads);
std::string NameOf(const char* kind, const Shape& shape);

// Two-byte types at every head size, block size and thread count that the aims name, the others as
// engines mostly use them.
std::vector<Shape> DecodeShapes();

// Rates are per core. Beside the two limits that make the share: what reading the same blocks in
// the same order with the same prefetch gives, the share of the smaller of that and the
// multiply-add limit, and the kernel's rate on blocks that stay in the cache.
Record BenchDecode(const Shape& shape, const Options& options);

}  // namespace quire::kernels::bench

#endif  // QUIRE_TESTS_KERNELS_BENCH_CASES_H_
