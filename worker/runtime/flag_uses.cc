#include "worker/runtime/flag_uses.h"

#include "absl/flags/commandlineflag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/str_cat.h"
#include "worker/runtime/flag_values.h"

namespace quire::runtime {
namespace {

enum Workloads : unsigned {
  kChat = 1,
  kSamples = 2,
  kBeam = 4,
  kTrace = 8,
  // trace_without_model
  kReplay = 16,
  kPrefillDecode = 32,
  kChats = kChat | kPrefillDecode,
  kPrompts = kChats | kSamples | kBeam,
  kModel = kPrompts | kTrace,
};

struct Use {
  const char* flag;
  unsigned workloads;
};

// All others count always.
constexpr Use kUses[] = {
    {"trace", kTrace | kReplay},
    {"trace_without_model", kReplay},
    {"trace_scale", kTrace},
    {"turns", kChats},
    {"think_ms", kChats},
    {"width", kSamples | kBeam},
    {"prompts", kPrompts},
    {"prompt_tokens", kPrompts},
    {"prompts_seed", kPrompts},
    {"new_tokens", kPrompts},
    // A beam search takes the best, and all its branches wait for each other.
    {"temperature", kModel & ~kBeam},
    {"lag", kModel & ~kBeam},
    {"drafts", kModel & ~kBeam},
    {"users", kModel},
    {"seed", kModel},
    {"seconds", kModel},
    {"verify", kModel},
    {"texts", kModel},
    {"layers", kModel},
    {"hidden", kModel},
    {"q_heads", kModel},
    {"kv_heads", kModel},
    {"head_dim", kModel},
    {"ffn", kModel},
    {"vocabulary", kModel},
    {"dtype", kModel},
    {"window", kModel},
    {"model_seed", kModel},
    {"backend", kModel},
    {"threads", kModel},
    {"admission", kModel},
    {"max_sequences", kModel},
    {"batch_tokens", kModel},
    {"chunk_tokens", kModel},
    {"steps_in_flight", kModel},
    {"rank_timeout", kModel},
};

unsigned WorkloadOf(const WorkerOptions& options) {
  if (options.workload == "samples") return kSamples;
  if (options.workload == "beam") return kBeam;
  if (options.workload == "trace") return options.trace_without_model ? kReplay : kTrace;
  return options.workload == "chat" ? kChat : kPrefillDecode;
}

bool IsChanged(const char* flag) {
  const absl::CommandLineFlag* found = absl::FindCommandLineFlag(flag);
  return found->CurrentValue() != found->DefaultValue();
}

}  // namespace

absl::Status CheckUses(WorkerOptions& options) {
  const unsigned workload = WorkloadOf(options);
  for (const Use& use : kUses) {
    if ((use.workloads & workload) == 0 && IsChanged(use.flag)) {
      return BadFlag(use.flag,
                     absl::StrCat("--workload=", options.workload,
                                  options.trace_without_model ? " --trace_without_model" : "",
                                  " does not use it"));
    }
  }
  if (options.client.mode != client::StepMode::kStream && options.prefill_fd < 0 &&
      IsChanged("steps_in_flight")) {
    return BadFlag("steps_in_flight", "only with --mode=stream");
  }
  if (options.client.ranks == 1 && IsChanged("rank_timeout")) {
    return BadFlag("rank_timeout", "only with several --ranks");
  }
  return absl::OkStatus();
}

}  // namespace quire::runtime
