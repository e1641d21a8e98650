// quire-gpu-bench [--json FILE]: ceilings, decode, prefill, writes and copies on the first CUDA
// device. quire-gpu-bench --one-decode: a single shape of decode, for a profiler to look at.
//
// Prints a table as it goes. Exits with 0, 1 if something failed, 2 for a wrong command line or a
// FILE that cannot be written, 3 if there is no CUDA device.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>

#include "tests/kernels/gpu/cases.h"
#include "tests/kernels/gpu/ceilings.h"

namespace quire::kernels::gpu {
namespace {

constexpr int kNoDevice = 3;
// A decode step of as many sequences, and a prefill.
constexpr int32_t kWriteTokens[] = {128, 8192};
constexpr DecodeShape kProfiled = {32, 4096, DType::kBF16, 16, false};
constexpr int64_t kHostBytes = int64_t{512} << 20;

class Run {
 public:
  void Add(const Result<Record>& record, const std::string& what) {
    if (record.ok()) return Add(*record);
    failed_ = true;
    std::cerr << "FAILED: " << what << ": " << record.status().message() << "\n";
  }

  void Add(const Record& record) {
    std::cout << ToTable({record}) << std::flush;
    records_.push_back(record);
  }

  bool failed() const { return failed_; }

  const std::vector<Record>& records() const { return records_; }

 private:
  std::vector<Record> records_;
  bool failed_ = false;
};

void RunCases(Bench& bench, const Ceilings& ceilings, Run& run) {
  run.Add({.name = "read_stream", .gb_per_s = 1e-9 * ceilings.read});
  run.Add({.name = "copy_stream", .gb_per_s = 1e-9 * ceilings.copy});
  bench.SetCeilings(ceilings.read, ceilings.copy);
  for (const DecodeShape& shape : DecodeShapes()) run.Add(bench.Decode(shape), "decode");
  for (const DType dtype : {DType::kBF16, DType::kE4M3}) {
    run.Add(bench.Prefill(dtype), "prefill");
    for (const int32_t tokens : kWriteTokens) run.Add(bench.Write(dtype, tokens), "write");
  }
  const Result<std::vector<Record>> cache = bench.CacheOps();
  if (!cache.ok()) return run.Add(cache.status(), "copies");
  for (const Record& record : *cache) run.Add(record);
}

int MeasureAll(Bench& bench, std::ostream& json) {
  const Ceilings ceilings =
      MeasureCeilings(bench.memory(), static_cast<size_t>(bench.memory_bytes()));
  if (!ceilings.error.empty()) {
    std::cerr << "ceilings: " << ceilings.error << "\n";
    return 1;
  }
  Run run;
  RunCases(bench, ceilings, run);
  std::cout << "\n" << ceilings.device << "\n" << ToTable(run.records());
  json << ToJson(ceilings.device, run.records());
  return run.failed() || !json.flush() ? 1 : 0;
}

int DecodeOnce(Bench& bench) {
  Run run;
  run.Add(bench.Decode(kProfiled), "decode");
  return run.failed() ? 1 : 0;
}

int Main(bool one_decode, std::ostream& json) {
  testing::Memory host(kHostBytes);
  Result<std::unique_ptr<DeviceBackend>> backend = CreateDeviceBackend();
  if (!backend.ok()) {
    std::cerr << "no CUDA device: " << backend.status().message() << "\n";
    return kNoDevice;
  }
  Result<std::unique_ptr<Bench>> bench = Bench::Create(**backend, host, {});
  if (!bench.ok()) {
    std::cerr << bench.status().message() << "\n";
    return 1;
  }
  return one_decode ? DecodeOnce(**bench) : MeasureAll(**bench, json);
}

}  // namespace
}  // namespace quire::kernels::gpu

int main(int argc, char** argv) {
  const bool named = argc == 3 && std::strcmp(argv[1], "--json") == 0;
  const bool one_decode = argc == 2 && std::strcmp(argv[1], "--one-decode") == 0;
  if (argc != 1 && !named && !one_decode) {
    std::cerr << "usage: quire-gpu-bench [--json FILE | --one-decode]\n";
    return 2;
  }
  std::ofstream json(named ? argv[2] : "/dev/null");
  if (!json) {
    std::cerr << "cannot write " << argv[2] << "\n";
    return 2;
  }
  return quire::kernels::gpu::Main(one_decode, json);
}
