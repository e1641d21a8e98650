// quire-kernel-bench: CPU kernels against what the machine can do, in one interleaved run.
//
// Every case alternates rounds of: read stream over the same pool, multiply-add peak, kernel;
// decode also reads the same blocks in the same order and runs once on blocks in the cache. The
// figures are medians of rounds; shares are medians of the ratio within a round. Time is CPU time
// of the threads, so that other load on the machine disturbs it little.
#include <getopt.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/backend.h"
#include "tests/kernels/bench/cases.h"
#include "tests/kernels/bench/setup.h"

namespace quire::kernels::bench {
namespace {

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
    const Peaks peaks = MeasurePeaks(setup.pool(), 1);
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
    stream.push_back(MeasurePeaks(setup.pool(), 1).stream_gb);
    rate.push_back(1e-9 * bytes / Time(body));
  }
  return {name, {{"gb_per_s_per_core", Median(rate)}, {"stream_gb_per_s", Median(stream)}}};
}

std::vector<Record> BenchCacheOps(const Options& options) {
  Setup setup(ParamsOf({DType::kBF16, 4, 16, 1}), options.pool_mib);
  const auto backend = Cpu(1);
  const PagedKvLayout& layout = setup.pool().layout;
  std::vector<CopyOrder> copies;
  std::vector<ChecksumOrder> checks;
  // Small pools hold fewer pairs.
  const size_t pairs = std::min<size_t>(256, setup.ids().size() / 2);
  for (size_t i = 0; i < pairs; ++i) {
    copies.push_back({setup.ids()[i], setup.ids()[i + pairs], layout.block_tokens()});
    checks.push_back({setup.ids()[i], 0, layout.block_tokens()});
  }
  std::vector<ChecksumSums> sums(checks.size());
  const double bytes = static_cast<double>(pairs) * static_cast<double>(layout.content_bytes());
  std::vector<Record> records;
  records.push_back(BenchCache("copy_blocks", setup, 2 * bytes, options,
                               [&] { Check(backend->CopyBlocks(setup.pool(), copies)); }));
  records.push_back(BenchCache("checksum_blocks", setup, bytes, options, [&] {
    Check(backend->ChecksumBlocks(setup.pool(), 0, checks, sums));
  }));
  const int64_t tokens = 4096;
  std::vector<float> rows(static_cast<size_t>(tokens * 2 * 8 * 128), 0.5f);
  std::vector<int64_t> targets;
  for (int64_t t = 0; t < tokens; ++t) {
    const size_t block = static_cast<size_t>(t / 16);
    targets.push_back(setup.ids().at(block) * int64_t{16} + t % 16);
  }
  const KvRows source{
      rows.data(), rows.data() + 1024, DType::kF32, 2048, 128, 2048, 128, 0, nullptr, nullptr};
  const double moved = static_cast<double>(tokens * 2 * 8 * 128) * (4 + 2);
  records.push_back(BenchCache("write_4096_tokens_fp32_to_bf16", setup, moved, options, [&] {
    Check(backend->WriteKv(setup.pool(), source, {targets.data(), tokens}, nullptr));
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
  for (const Shape& shape : DecodeShapes()) {
    const bool named = NameOf("decode", shape).starts_with(options.only);
    if (named) cases.push_back([=] { return std::vector<Record>{BenchDecode(shape, options)}; });
  }
  if (wants("decode")) {
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

constexpr char kHelp[] =
    R"(Usage: quire-kernel-bench [--json] [--rounds=N] [--only=PART] [--pool-mib=N]

Measures the CPU kernels beside what the machine gives: a read stream over the same pool, the same
blocks read in the same order, and fp32 multiply-adds. Each case prints medians of its rounds.

  --json        one JSON array instead of lines
  --rounds=N    rounds a case, 1 to 1000 (5)
  --only=PART   decode, append or cache; of decode also a start of names, such as decode/bf16/G8
  --pool-mib=N  size of the pool, 64 to 65536 (512); smaller than the caches it measures those
  --help        this text
)";

[[noreturn]] void Refuse(const std::string& what) {
  std::fprintf(stderr, "quire-kernel-bench: %s (see --help)\n", what.c_str());
  std::exit(2);
}

int Number(const char* flag, const std::string& text, int least, int most) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || *end != '\0' || value < least || value > most) {
    Refuse(std::string(flag) + " must be a number from " + std::to_string(least) + " to " +
           std::to_string(most) + ", not '" + text + "'");
  }
  return value;
}

Options Parse(int argc, char** argv) {
  constexpr option kFlags[] = {
      {"json", no_argument, nullptr, 'j'},       {"rounds", required_argument, nullptr, 'r'},
      {"only", required_argument, nullptr, 'o'}, {"pool-mib", required_argument, nullptr, 'p'},
      {"help", no_argument, nullptr, 'h'},       {nullptr, 0, nullptr, 0}};
  Options options;
  for (int flag; (flag = getopt_long(argc, argv, "", kFlags, nullptr)) != -1;) {
    switch (flag) {
      case 'j':
        options.json = true;
        break;
      case 'r':
        options.rounds = Number("--rounds", optarg, 1, 1000);
        break;
      case 'o':
        options.only = optarg;
        break;
      case 'p':
        options.pool_mib = Number("--pool-mib", optarg, 64, 65536);
        break;
      case 'h':
        std::fputs(kHelp, stdout);
        std::exit(0);
      default:
        std::exit(2);
    }
  }
  if (optind < argc) Refuse(std::string("unexpected argument ") + argv[optind]);
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
  if (first) Refuse("no case is called '" + options.only + "'");
  return 0;
}

}  // namespace
}  // namespace quire::kernels::bench

int main(int argc, char** argv) { return quire::kernels::bench::Main(argc, argv); }
