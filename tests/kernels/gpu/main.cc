// quire-gpu-bench [--json FILE]: ceilings, decode, prefill and copies on the first CUDA device.
//
// Prints a table as it goes. Exits with 0, 1 if something failed, 2 for a wrong command line, 3 if
// there is no CUDA device.
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
  for (const DType dtype : {DType::kBF16, DType::kE4M3}) run.Add(bench.Prefill(dtype), "prefill");
  const Result<std::vector<Record>> cache = bench.CacheOps();
  if (!cache.ok()) return run.Add(cache.status(), "copies");
  for (const Record& record : *cache) run.Add(record);
}

int Main(const std::string& json_file) {
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
  const Ceilings ceilings =
      MeasureCeilings((*bench)->memory(), static_cast<size_t>((*bench)->memory_bytes()));
  if (!ceilings.error.empty()) {
    std::cerr << "ceilings: " << ceilings.error << "\n";
    return 1;
  }
  Run run;
  RunCases(**bench, ceilings, run);
  std::cout << "\n" << ceilings.device << "\n" << ToTable(run.records());
  std::ofstream json(json_file);
  json << ToJson(ceilings.device, run.records());
  return run.failed() || !json.flush() ? 1 : 0;
}

}  // namespace
}  // namespace quire::kernels::gpu

int main(int argc, char** argv) {
  const bool named = argc == 3 && std::strcmp(argv[1], "--json") == 0;
  if (argc != 1 && !named) {
    std::cerr << "usage: quire-gpu-bench [--json FILE]\n";
    return 2;
  }
  return quire::kernels::gpu::Main(named ? argv[2] : "/dev/null");
}
