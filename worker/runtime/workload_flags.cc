#include "worker/runtime/workload_flags.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>

#include "absl/flags/flag.h"
#include "worker/runtime/flag_values.h"

ABSL_FLAG(std::string, workload, "chat",
          "chat, samples, beam, trace or prefill-decode (chat in two processes).");
ABSL_FLAG(uint64_t, seed, 1, "Seed of the workload.");
ABSL_FLAG(uint64_t, prompts_seed, 0,
          "Seed of the system prompts, equal for workers that share them. 0: the seed.");
ABSL_FLAG(double, temperature, 0.7, "Sampling temperature. 0: greedy.");
ABSL_FLAG(uint32_t, users, 8, "Users of chat; requests at once of the others.");
ABSL_FLAG(uint32_t, prompts, 3, "Different system prompts.");
ABSL_FLAG(uint32_t, prompt_tokens, 96, "Tokens of a system prompt.");
ABSL_FLAG(uint32_t, turns, 4, "Turns of a conversation.");
ABSL_FLAG(double, think_ms, 300, "Time that a chat user reads an answer. 0: as fast as possible.");
ABSL_FLAG(uint32_t, new_tokens, 24, "Tokens to generate.");
ABSL_FLAG(uint32_t, width, 4, "Samples per prompt, or beams.");
ABSL_FLAG(std::string, trace, "", "Mooncake JSON lines or Azure CSV file, for --workload trace.");
ABSL_FLAG(bool, trace_without_model, false,
          "Replay block by block without computing, against a pool without memory.");
ABSL_FLAG(uint32_t, trace_scale, 64, "With the model: divide all lengths of the trace by this.");

namespace quire::runtime {
namespace {

absl::Status CheckSizes(const WorkloadOptions& load) {
  constexpr uint32_t kMost = 1'000'000;
  const std::pair<const char*, uint32_t> sizes[] = {
      {"users", load.users}, {"prompts", load.prompts},       {"prompt_tokens", load.prompt_tokens},
      {"turns", load.turns}, {"new_tokens", load.new_tokens}, {"width", load.width}};
  for (const auto& [flag, value] : sizes) {
    if (absl::Status status = CheckRange(flag, value, 1, kMost); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ReadSizes(WorkloadOptions& load) {
  load.users = absl::GetFlag(FLAGS_users);
  load.prompts = absl::GetFlag(FLAGS_prompts);
  load.prompt_tokens = absl::GetFlag(FLAGS_prompt_tokens);
  load.turns = absl::GetFlag(FLAGS_turns);
  load.new_tokens = absl::GetFlag(FLAGS_new_tokens);
  load.width = absl::GetFlag(FLAGS_width);
  return CheckSizes(load);
}

absl::Status ReadSampling(WorkloadOptions& load) {
  load.seed = absl::GetFlag(FLAGS_seed);
  load.prompts_seed = absl::GetFlag(FLAGS_prompts_seed);
  load.temperature = static_cast<float>(absl::GetFlag(FLAGS_temperature));
  if (load.temperature >= 0 && std::isfinite(load.temperature)) return absl::OkStatus();
  return BadFlag("temperature", "must be finite and not negative");
}

absl::Status ReadTraceFlags(WorkerOptions& options) {
  options.trace_file = absl::GetFlag(FLAGS_trace);
  options.trace_without_model = absl::GetFlag(FLAGS_trace_without_model);
  options.trace_scale = absl::GetFlag(FLAGS_trace_scale);
  if (options.workload == "trace" && options.trace_file.empty()) {
    return BadFlag("trace", "--workload=trace needs it");
  }
  return CheckRange("trace_scale", options.trace_scale, 1, 1'000'000);
}

}  // namespace

absl::Status ReadLoad(WorkerOptions& options) {
  options.workload = absl::GetFlag(FLAGS_workload);
  const std::string known[] = {"chat", "samples", "beam", "trace", "prefill-decode"};
  if (std::find(std::begin(known), std::end(known), options.workload) == std::end(known)) {
    return Unknown("workload", options.workload, "chat, samples, beam, trace, prefill-decode");
  }
  options.load.vocabulary = static_cast<uint32_t>(options.model.vocabulary);
  const auto think = ToDuration("think_ms", absl::GetFlag(FLAGS_think_ms) / 1000);
  if (!think.ok()) return think.status();
  options.load.think = *think;
  if (absl::Status status = ReadSampling(options.load); !status.ok()) return status;
  if (absl::Status status = ReadSizes(options.load); !status.ok()) return status;
  return ReadTraceFlags(options);
}

}  // namespace quire::runtime
