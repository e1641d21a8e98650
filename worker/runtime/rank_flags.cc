#include "worker/runtime/rank_flags.h"

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "worker/model/shard.h"
#include "worker/runtime/flag_values.h"

ABSL_FLAG(uint32_t, ranks, 1,
          "Processes that share out the heads of the model; the server needs as many --ranks.");
ABSL_FLAG(uint32_t, rank_timeout, 10,
          "Seconds after which a process that lets the others wait is replaced by a new one.");
ABSL_FLAG(uint32_t, rank, 0, "Set by quire-worker itself: the rank of this process.");
ABSL_FLAG(int32_t, rank_fd, -1, "Set by quire-worker itself: line to the scheduler's process.");
ABSL_FLAG(int32_t, reduce_fd, -1, "Set by quire-worker itself: memory shared by the ranks.");
ABSL_DECLARE_FLAG(std::string, workload);

namespace quire::runtime {

absl::Status ReadRanks(WorkerOptions& options) {
  options.client.ranks = absl::GetFlag(FLAGS_ranks);
  options.rank = absl::GetFlag(FLAGS_rank);
  options.rank_fd = absl::GetFlag(FLAGS_rank_fd);
  options.reduce_fd = absl::GetFlag(FLAGS_reduce_fd);
  options.rank_timeout = std::chrono::seconds(absl::GetFlag(FLAGS_rank_timeout));
  if (options.rank_timeout == Duration::zero() || options.rank_timeout > std::chrono::hours(1)) {
    return absl::InvalidArgumentError("--rank_timeout must be 1 to 3600 seconds");
  }
  if (options.rank >= options.client.ranks) {
    return BadFlag("rank",
                   absl::StrCat(options.rank, " is not below --ranks, ", options.client.ranks));
  }
  if ((options.rank > 0) != (options.rank_fd >= 0) ||
      (options.rank > 0) != (options.reduce_fd >= 0)) {
    return BadFlag("rank", "set by quire-worker itself, with --rank_fd and --reduce_fd");
  }
  if (options.client.ranks > 1 && absl::GetFlag(FLAGS_workload) == "prefill-decode") {
    return absl::InvalidArgumentError("--workload=prefill-decode needs --ranks=1");
  }
  const absl::Status status =
      model::ValidateShards(options.model, static_cast<int32_t>(options.client.ranks));
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat("--ranks: ", status.message()));
}

}  // namespace quire::runtime
