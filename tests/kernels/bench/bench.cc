// quire-kernel-bench: CPU kernels against what the machine can do, in one interleaved run.
//
//   quire-kernel-bench [--json] [--rounds N] [--pool-mib N] [--only decode|append|cache]
//
// Every case alternates rounds of: read stream over the same pool, multiply-add peak, kernel. The
// figures are medians of rounds; shares are medians of the ratio within a round. Time is CPU time
// of the threads, so that other load on the machine disturbs it little.
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "kernels/backend.h"
#include "kernels/dtype.h"
#include "tests/kernels/bench/first_version.h"
#include "tests/kernels/bench/machine_limits.h"
#include "tests/kernels/testing/pool_fixture.h"

namespace quire::kernels::bench {
namespace {

using testing::Layout;
using testing::Random;
using testing::ShuffledIds;
using testing::TestPool;

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

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double Time(const std::function<void()>& body) {
  const double start = CpuSeconds();
  body();
  return CpuSeconds() - start;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

volatile float sink;

// Per core, from one short run each.
struct Peaks {
  double stream_gb;
  double gfma;
};

Peaks MeasurePeaks(const TestPool& pool) {
  constexpr int64_t kRounds = 4000000;
  const int64_t bytes = std::min<int64_t>(pool.view().bytes, int64_t{256} << 20) / 4096 * 4096;
  const double read = Time([&] { sink = ReadStream(pool.view().base, bytes); });
  const double fma = Time([&] { sink = MultiplyAdd(kRounds); });
  return {1e-9 * static_cast<double>(bytes) / read,
          1e-9 * static_cast<double>(kRounds * FmaPerRound()) / fma};
}

void Check(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s: %s\n", status.argument().c_str(), status.message().c_str());
  std::exit(1);
}

// A pool filled with realistic values and sequences over shuffled blocks of it.
class Setup {
 public:
  Setup(const LayoutParams& params, int64_t pool_mib)
      : pool_(Layout(params), (pool_mib << 20) / Layout(params).block_bytes, false) {
    madvise(pool_.view().base, static_cast<size_t>(pool_.view().bytes), MADV_HUGEPAGE);
    Random random(1);
    pool_.FillBlock(0, random);
    // Rotated copies of one block: values do not matter, their distribution does.
    const PagedKvLayout& l = pool_.layout();
    for (int64_t b = 1; b < pool_.view().num_blocks; ++b) {
      std::memcpy(pool_.view().base + b * l.block_bytes, pool_.view().base,
                  static_cast<size_t>(l.content_bytes()));
    }
    ids_ = ShuffledIds(pool_.view().num_blocks, random);
  }

  // `rows` sequences of kv tokens with q new ones each.
  void SetBatch(int64_t rows, int32_t kv, int32_t q, int32_t q_heads, DType dtype) {
    const PagedKvLayout& l = pool_.layout();
    table_.columns = (kv + l.block_tokens() - 1) / l.block_tokens();
    table_.row_stride = table_.columns;
    table_.rows = std::min(rows, pool_.view().num_blocks / table_.columns);
    lens_.assign(static_cast<size_t>(table_.rows), kv);
    table_.ids = ids_.data();
    table_.lens = lens_.data();
    cu_.clear();
    for (int32_t i = 0; i <= table_.rows; ++i) cu_.push_back(i * q);
    params_ = {};
    params_.q_rows = table_.rows * q;
    params_.q_heads = q_heads;
    params_.cu_q_lens = cu_.data();
    const int64_t row = int64_t{q_heads} * l.head_dim;
    q_.resize(static_cast<size_t>(params_.q_rows * row) * 4);
    out_.resize(q_.size());
    Random random(2);
    for (int64_t i = 0; i < params_.q_rows * row; ++i) {
      StoreElement(dtype, q_.data(), i, random.Normal());
    }
    params_.q = q_.data();
    params_.out = out_.data();
    params_.q_dtype = params_.out_dtype = dtype;
    params_.q_row_stride = params_.out_row_stride = row;
    params_.q_head_stride = params_.out_head_stride = l.head_dim;
    params_.scale = 1.0f / std::sqrt(static_cast<float>(l.head_dim));
    params_.k_scale = params_.v_scale = scales_.data();
  }

  void Plan(Backend& backend) {
    Result<AttentionPlan> plan = backend.Plan(pool_.view(), table_, params_, {});
    Check(plan.status());
    plan_ = std::move(*plan);
    workspace_.resize(static_cast<size_t>(plan_.workspace_bytes));
  }

  void Attend(Backend& backend) {
    params_.layer = (params_.layer + 1) % pool_.layout().layers;
    Check(backend.DecodeAttention(pool_.view(), table_, params_, plan_, workspace_));
  }

  void AttendFirstVersion() { FirstVersionAttention(pool_.view(), table_, params_); }

  // Bytes of K and V that one layer of the batch holds.
  double KvBytes() const {
    const PagedKvLayout& l = pool_.layout();
    return static_cast<double>(table_.rows * lens_[0] * 2 * l.kv_heads * l.row_bytes());
  }

  double Flops() const {
    const double n = static_cast<double>(cu_[1]);
    const double past = static_cast<double>(lens_[0]) - n;
    return 4.0 * pool_.layout().head_dim * params_.q_heads * static_cast<double>(table_.rows) *
           (n * past + n * (n + 1) / 2);
  }

  TestPool& pool() { return pool_; }

  const std::vector<int32_t>& ids() const { return ids_; }

 private:
  TestPool pool_;
  std::vector<int32_t> ids_;
  std::vector<int32_t> lens_;
  std::vector<int32_t> cu_;
  std::vector<float> scales_ = std::vector<float>(64, 0.5f);
  std::vector<std::byte> q_;
  std::vector<std::byte> out_;
  std::vector<std::byte> workspace_;
  BlockTableView table_;
  AttentionParams params_;
  AttentionPlan plan_;
};

struct Shape {
  DType dtype;
  int32_t group;
  int32_t block_tokens;
  int threads;
};

LayoutParams ParamsOf(const Shape& shape) {
  LayoutParams params{.dtype = shape.dtype,
                      .layers = 4,
                      .kv_heads = 8,
                      .head_dim = 128,
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
         std::to_string(shape.block_tokens) + "/threads" + std::to_string(shape.threads);
}

Record BenchDecode(const Shape& shape, const Options& options) {
  Setup setup(ParamsOf(shape), options.pool_mib);
  const auto backend = Cpu(shape.threads);
  const DType q_type = shape.dtype == DType::kF32 ? DType::kF32 : DType::kBF16;
  setup.SetBatch(16, 4096, 1, 8 * shape.group, q_type);
  setup.Plan(*backend);
  const auto element = static_cast<double>(ElementBytes(shape.dtype));
  std::vector<double> rate, stream, gfma, share;
  for (int round = 0; round < options.rounds; ++round) {
    const Peaks peaks = MeasurePeaks(setup.pool());
    const double seconds = Time([&] { setup.Attend(*backend); });
    // CPU seconds of all threads: a rate per core.
    rate.push_back(1e-9 * setup.KvBytes() / seconds);
    stream.push_back(peaks.stream_gb);
    gfma.push_back(peaks.gfma);
    const double limit = std::min(peaks.stream_gb, peaks.gfma * element / shape.group);
    share.push_back(rate.back() / limit);
  }
  return {NameOf("decode", shape),
          {{"gb_per_s_per_core", Median(rate)},
           {"stream_gb_per_s", Median(stream)},
           {"fma_limit_gb_per_s", Median(gfma) * element / shape.group},
           {"share_of_limit", Median(share)}}};
}

// Against the first version, on data that fits the cache, so that only the loops differ.
Record BenchAgainstFirst(const Shape& shape, int32_t kv, int32_t q) {
  Setup setup(ParamsOf(shape), 64);
  const auto backend = Cpu(1);
  setup.SetBatch(1, kv, q, 8 * shape.group, DType::kF32);
  setup.Plan(*backend);
  std::vector<double> faster, first, now;
  for (int round = 0; round < 3; ++round) {
    first.push_back(Time([&] { setup.AttendFirstVersion(); }));
    now.push_back(Time([&] { setup.Attend(*backend); }));
    faster.push_back(first.back() / now.back());
  }
  return {NameOf(q == 1 ? "first_version_decode" : "first_version_append", shape),
          {{"first_ms", 1e3 * Median(first)},
           {"now_ms", 1e3 * Median(now)},
           {"times_faster", Median(faster)}}};
}

Record BenchAppend(const Shape& shape, const Options& options) {
  Setup setup(ParamsOf(shape), options.pool_mib);
  const auto backend = Cpu(shape.threads);
  setup.SetBatch(1, 4096 + 512, 512, 8 * shape.group, DType::kBF16);
  setup.Plan(*backend);
  std::vector<double> rate, peak, share;
  for (int round = 0; round < options.rounds; ++round) {
    const Peaks peaks = MeasurePeaks(setup.pool());
    const double seconds = Time([&] { setup.Attend(*backend); });
    rate.push_back(1e-9 * setup.Flops() / seconds);
    peak.push_back(2 * peaks.gfma);
    share.push_back(rate.back() / peak.back());
  }
  return {NameOf("append_512_on_4096", shape),
          {{"gflop_per_s_per_core", Median(rate)},
           {"fma_peak_gflop_per_s", Median(peak)},
           {"share_of_limit", Median(share)}}};
}

// Bytes moved (read + write for copies) per CPU second, beside the read stream.
Record BenchCache(const char* name, Setup& setup, double bytes, const Options& options,
                  const std::function<void()>& body) {
  std::vector<double> rate, stream;
  for (int round = 0; round < options.rounds; ++round) {
    stream.push_back(MeasurePeaks(setup.pool()).stream_gb);
    rate.push_back(1e-9 * bytes / Time(body));
  }
  return {name, {{"gb_per_s_per_core", Median(rate)}, {"stream_gb_per_s", Median(stream)}}};
}

std::vector<Record> BenchCacheOps(const Options& options) {
  Setup setup(ParamsOf({DType::kBF16, 4, 16, 1}), options.pool_mib);
  const auto backend = Cpu(1);
  const PagedKvLayout& layout = setup.pool().layout();
  std::vector<CopyOrder> copies;
  std::vector<ChecksumOrder> checks;
  for (size_t i = 0; i < 256; ++i) {
    copies.push_back({setup.ids()[i], setup.ids()[i + 256], layout.block_tokens()});
    checks.push_back({setup.ids()[i], 0, layout.block_tokens()});
  }
  std::vector<ChecksumSums> sums(checks.size());
  const double bytes = 256.0 * static_cast<double>(layout.content_bytes());
  std::vector<Record> records;
  records.push_back(BenchCache("copy_256_blocks", setup, 2 * bytes, options,
                               [&] { Check(backend->CopyBlocks(setup.pool().view(), copies)); }));
  records.push_back(BenchCache("checksum_256_blocks", setup, bytes, options, [&] {
    Check(backend->ChecksumBlocks(setup.pool().view(), 0, checks, sums));
  }));
  const int64_t tokens = 4096;
  std::vector<float> rows(static_cast<size_t>(tokens * 2 * 8 * 128), 0.5f);
  std::vector<int64_t> targets;
  for (int64_t t = 0; t < tokens; ++t) {
    targets.push_back(setup.ids()[static_cast<size_t>(t / 16)] * int64_t{16} + t % 16);
  }
  const KvRows source{
      rows.data(), rows.data() + 1024, DType::kF32, 2048, 128, 2048, 128, 0, nullptr, nullptr};
  const double moved = static_cast<double>(tokens * 2 * 8 * 128) * (4 + 2);
  records.push_back(BenchCache("write_4096_tokens_fp32_to_bf16", setup, moved, options, [&] {
    Check(backend->WriteKv(setup.pool().view(), source, {targets.data(), tokens}, nullptr));
  }));
  return records;
}

void Print(const Record& record, const Options& options, bool first) {
  if (options.json) {
    std::printf("%s\n  {\"name\": \"%s\"", first ? "" : ",", record.name.c_str());
    for (const auto& [key, value] : record.numbers) {
      std::printf(", \"%s\": %.4g", key.c_str(), value);
    }
    std::printf("}");
  } else {
    std::printf("%-44s", record.name.c_str());
    for (const auto& [key, value] : record.numbers) std::printf("  %s %.3g", key.c_str(), value);
    std::printf("\n");
  }
  std::fflush(stdout);
}

std::vector<std::function<std::vector<Record>()>> Cases(const Options& options) {
  std::vector<std::function<std::vector<Record>()>> cases;
  const auto wants = [&](const char* part) { return options.only.empty() || options.only == part; };
  if (wants("decode")) {
    for (const DType dtype : {DType::kBF16, DType::kF16, DType::kE4M3, DType::kI8, DType::kF32}) {
      for (const int32_t group : {1, 4, 8}) {
        const Shape shape{dtype, group, 16, 1};
        cases.push_back([=] { return std::vector<Record>{BenchDecode(shape, options)}; });
      }
    }
    for (const Shape& shape : {Shape{DType::kBF16, 4, 64, 1}, Shape{DType::kBF16, 4, 16, 2}}) {
      cases.push_back([=] { return std::vector<Record>{BenchDecode(shape, options)}; });
    }
    for (const DType dtype : {DType::kBF16, DType::kE4M3}) {
      const Shape shape{dtype, 4, 16, 1};
      cases.push_back([=] { return std::vector<Record>{BenchAgainstFirst(shape, 4096, 1)}; });
    }
  }
  if (wants("append")) {
    for (const DType dtype : {DType::kBF16, DType::kE4M3}) {
      const Shape shape{dtype, 4, 16, 1};
      cases.push_back([=] { return std::vector<Record>{BenchAppend(shape, options)}; });
    }
    const Shape shape{DType::kBF16, 4, 16, 1};
    cases.push_back([=] { return std::vector<Record>{BenchAgainstFirst(shape, 256, 128)}; });
  }
  if (wants("cache")) cases.push_back([=] { return BenchCacheOps(options); });
  return cases;
}

Options Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (flag == "--json") {
      options.json = true;
    } else if (flag == "--rounds" || flag == "--pool-mib" || flag == "--only") {
      if (flag == "--rounds") options.rounds = std::max(1, std::atoi(value));
      if (flag == "--pool-mib") options.pool_mib = std::max(64, std::atoi(value));
      if (flag == "--only") options.only = value;
      ++i;
    } else {
      std::fprintf(stderr, "unknown flag %s\n", flag.c_str());
      std::exit(2);
    }
  }
  return options;
}

int Main(int argc, char** argv) {
  const Options options = Parse(argc, argv);
  bool first = true;
  if (options.json) std::printf("[");
  for (const auto& run : Cases(options)) {
    for (const Record& record : run()) {
      Print(record, options, first);
      first = false;
    }
  }
  if (options.json) std::printf("\n]\n");
  return 0;
}

}  // namespace
}  // namespace quire::kernels::bench

int main(int argc, char** argv) { return quire::kernels::bench::Main(argc, argv); }
