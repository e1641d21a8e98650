// Public request traces: lengths, and for Mooncake which prompts share which prefix.
#ifndef QUIRE_WORKER_RUNTIME_TRACE_H_
#define QUIRE_WORKER_RUNTIME_TRACE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/runtime/workload.h"

namespace quire::runtime {

// Prompt tokens behind one hash id of a Mooncake trace.
inline constexpr uint32_t kTraceIdTokens = 512;

struct TraceRequest {
  uint32_t input_tokens = 0;
  uint32_t output_tokens = 0;
  // One id per kTraceIdTokens tokens of the prompt; equal ids at equal places are equal prefixes.
  // Empty if the trace says nothing about content.
  std::vector<uint32_t> ids;
};

// Reads Mooncake JSON lines (timestamp, input_length, output_length, hash_ids) or Azure CSV
// (TIMESTAMP,ContextTokens,GeneratedTokens), by the first character of the file. INVALID_ARGUMENT
// names the line.
absl::StatusOr<std::vector<TraceRequest>> ReadTrace(const std::string& path);

// The trace with all lengths divided by `scale`, as requests for the model; ends with the trace.
// Requests that are longer than the pool's sequences even so are cut.
std::unique_ptr<Workload> MakeTrace(std::vector<TraceRequest> trace, const WorkloadOptions& options,
                                    uint32_t scale);

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_TRACE_H_
