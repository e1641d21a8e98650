// What a GPU run found, as JSON for programs and as a table for people.
#ifndef QUIRE_TESTS_KERNELS_GPU_REPORT_H_
#define QUIRE_TESTS_KERNELS_GPU_REPORT_H_

#include <string>
#include <vector>

namespace quire::kernels::gpu {

// Figures that do not apply are negative: left out of the JSON, "-" in the table.
struct Record {
  std::string name;      // "decode/bf16/B8/4096/N16/block-first"
  double us = -1;        // per call, wall time of the stream
  double gb_per_s = -1;  // of the bytes that the work needs
  double tflop_per_s = -1;
  double share = -1;  // of the ceiling measured in the same run
};

// {"device": ..., "records": [...]}
std::string ToJson(const std::string& device, const std::vector<Record>& records);

std::string ToTable(const std::vector<Record>& records);

}  // namespace quire::kernels::gpu

#endif  // QUIRE_TESTS_KERNELS_GPU_REPORT_H_
