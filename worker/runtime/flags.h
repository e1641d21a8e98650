// Command line of quire-worker.
#ifndef QUIRE_WORKER_RUNTIME_FLAGS_H_
#define QUIRE_WORKER_RUNTIME_FLAGS_H_

#include <string>

#include "absl/status/statusor.h"
#include "worker/client/client_options.h"
#include "worker/model/kernel_choice.h"
#include "worker/model/model_config.h"
#include "worker/runtime/runner.h"
#include "worker/runtime/scheduler_options.h"
#include "worker/runtime/workload.h"

namespace quire::runtime {

struct WorkerOptions {
  std::string workload;
  client::ClientOptions client;
  model::ModelConfig model;
  uint64_t model_seed = 1;
  model::KernelChoice kernels;
  SchedulerOptions scheduler;
  WorkloadOptions load;
  RunLimits limits;
  bool verify = false;
  bool progress = true;
  std::string json_file;
  // Empty: none.
  std::string texts_file;
  // Trace workload.
  std::string trace_file;
  bool trace_without_model = false;
  uint32_t trace_scale = 64;
  // Set in the process that computes the prompts of prefill-decode: its end of the socket.
  int prefill_fd = -1;
  // Set in the processes of the ranks beside the scheduler's: theirs of client.ranks, the line to
  // the scheduler, and the memory for sums.
  uint32_t rank = 0;
  int rank_fd = -1;
  int reduce_fd = -1;
  // A rank that lets the others wait so long is replaced.
  Duration rank_timeout = std::chrono::seconds(10);
};

// Parses and checks; INVALID_ARGUMENT names the flag, unknown ones included. Ends the process for
// --help.
absl::StatusOr<WorkerOptions> ParseFlags(int argc, char** argv);

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_FLAGS_H_
