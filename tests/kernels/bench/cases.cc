#include "tests/kernels/bench/cases.h"

#include <algorithm>

#include "tests/kernels/bench/setup.h"

namespace quire::kernels::bench {
namespace {

constexpr int64_t kCachedBytes = int64_t{512} << 10;

}  // namespace

LayoutParams ParamsOf(const Shape& shape) {
  LayoutParams params{.dtype = shape.dtype,
                      .layers = 4,
                      .kv_heads = 8,
                      .head_dim = shape.head_dim,
                      .block_tokens = shape.block_tokens};
  if (ElementBytes(shape.dtype) == 1) params.scale_kind = ScaleKind::kPerTensor;
  return params;
}

std::unique_ptr<Backend> Cpu(int threads) {
  Result<std::unique_ptr<Backend>> backend = CreateBackend("cpu", {.threads = threads});
  Check(backend.status());
  return std::move(*backend);
}

std::string NameOf(const char* kind, const Shape& shape) {
  return std::string(kind) + "/" + Name(shape.dtype) + "/G" + std::to_string(shape.group) + "/N" +
         std::to_string(shape.block_tokens) + "/D" + std::to_string(shape.head_dim) + "/threads" +
         std::to_string(shape.threads);
}

std::vector<Shape> DecodeShapes() {
  std::vector<Shape> shapes;
  for (const DType dtype : {DType::kBF16, DType::kF16, DType::kE4M3, DType::kI8}) {
    for (const int32_t head_dim : {64, 128, 256}) {
      for (const int32_t n : {16, 64}) {
        for (const int threads : {1, 2}) {
          for (const int32_t group : {1, 4, 8}) {
            shapes.push_back({dtype, group, n, threads, head_dim});
          }
        }
      }
    }
  }
  for (const int32_t group : {1, 4, 8}) shapes.push_back({DType::kF32, group, 16, 1});
  return shapes;
}

Record BenchDecode(const Shape& shape, const Options& options) {
  const DType q_type = shape.dtype == DType::kF32 ? DType::kF32 : DType::kBF16;
  const auto backend = Cpu(shape.threads);
  Setup setup(ParamsOf(shape), options.pool_mib);
  setup.SetBatch(16, 4096, 1, 8 * shape.group, q_type);
  setup.Plan(*backend);
  const double element = static_cast<double>(ElementBytes(shape.dtype)) / shape.group;
  std::vector<double> rate, stream, order, cached, fma, share, reachable;
  for (int round = 0; round < options.rounds; ++round) {
    const Peaks peaks = MeasurePeaks(setup.pool(), shape.threads);
    // CPU seconds of all threads: a rate per core.
    const auto measure = [&](const auto& body) { return 1e-9 * setup.KvBytes() / Time(body); };
    stream.push_back(peaks.stream_gb);
    fma.push_back(peaks.gfma * element);
    order.push_back(measure([&] { setup.ReadInOrder(shape.threads); }));
    rate.push_back(measure([&] { setup.Attend(*backend); }));
    setup.RepeatBlocks(kCachedBytes);
    cached.push_back(measure([&] { setup.Attend(*backend); }));
    setup.RepeatBlocks(0);
    share.push_back(rate.back() / std::min(stream.back(), fma.back()));
    reachable.push_back(rate.back() / std::min(order.back(), fma.back()));
  }
  return {NameOf("decode", shape),
          {{"gb_per_s_per_core", Median(rate)},
           {"stream_gb_per_s", Median(stream)},
           {"fma_limit_gb_per_s", Median(fma)},
           {"share_of_limit", Median(share)},
           {"order_stream_gb_per_s", Median(order)},
           {"share_of_reachable", Median(reachable)},
           {"in_cache_gb_per_s", Median(cached)}}};
}

}  // namespace quire::kernels::bench
