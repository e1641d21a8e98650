#include "worker/runtime/flags.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cache_service/base/command_line.h"
#include "cache_service/base/default_socket.h"
#include "cache_service/base/tcp_address.h"
#include "worker/runtime/flag_files.h"
#include "worker/runtime/flag_uses.h"
#include "worker/runtime/flag_values.h"
#include "worker/runtime/kernel_flags.h"
#include "worker/runtime/rank_flags.h"
#include "worker/runtime/workload_flags.h"

ABSL_FLAG(std::string, server, "unix:" + quire::DefaultUnixSocket(),
          "unix:/path or host:port of the server.");
ABSL_FLAG(std::string, token, "", "Bearer token, if the server wants one.");
ABSL_FLAG(std::string, name, "worker",
          "Name of this worker; a younger one of the name displaces it.");
ABSL_FLAG(std::string, pool, "", "Pool to attach to. Not given: the server's only one.");
ABSL_FLAG(std::string, mode, "stream", "How steps travel: stream, unary or lock-step.");
ABSL_FLAG(double, lease_seconds, 0, "Lease to ask for. 0: the server's default.");

ABSL_FLAG(double, server_timeout, 60,
          "Seconds to wait for a server that is away or drains before giving up.");

ABSL_FLAG(
    double, seconds, 0,
    "Stop sending requests after this time, or at SIGINT or SIGTERM. 0 with --requests 0: 20.");
ABSL_FLAG(uint64_t, requests, 0, "Stop after this many requests. 0: no limit.");
ABSL_FLAG(bool, verify, false,
          "Compute every request again without sharing and compare tokens and logits.");
ABSL_FLAG(std::string, json, "", "Write the summary to this file.");
ABSL_FLAG(std::string, texts, "",
          "Append each finished request with its text to this file, a line of JSON each.");
ABSL_FLAG(bool, progress, true, "Show a progress line.");
ABSL_FLAG(int32_t, prefill_fd, -1,
          "Set by quire-worker itself: serve prompts to the process at this socket.");

ABSL_FLAG(int32_t, layers, 4, "Layers of the model.");
ABSL_FLAG(int32_t, hidden, 128, "Width of the model.");
ABSL_FLAG(int32_t, q_heads, 4, "Query heads.");
ABSL_FLAG(int32_t, kv_heads, 2, "Key and value heads.");
ABSL_FLAG(int32_t, head_dim, 64, "Elements of a head: 64, 80, 96, 128, 192 or 256.");
ABSL_FLAG(int32_t, ffn, 256, "Width of the feed-forward part.");
ABSL_FLAG(int32_t, vocabulary, 512, "Number of tokens.");
ABSL_FLAG(std::string, dtype, "fp32", "Storage of keys and values: fp32, bf16 or fp16.");
ABSL_FLAG(uint32_t, window, 0, "If not 0, five of six layers see only this many tokens.");
ABSL_FLAG(uint64_t, model_seed, 1, "Seed of the weights.");

ABSL_FLAG(
    std::string, admission, "best-effort",
    "best-effort: begin early, preempt on shortage. guaranteed: claim blocks, never preempt.");
ABSL_FLAG(uint32_t, max_sequences, 16, "Sequences that run at once.");
ABSL_FLAG(uint32_t, batch_tokens, 256, "Tokens computed per launch, at most.");
ABSL_FLAG(uint32_t, chunk_tokens, 128, "Prompt tokens of one sequence per launch.");
ABSL_FLAG(uint32_t, steps_in_flight, 4, "Unanswered steps, at most.");
ABSL_FLAG(uint32_t, lag, 0,
          "Launches queued before the tokens that earlier ones choose are known.");
ABSL_FLAG(uint32_t, drafts, 0, "Tokens proposed per launch by prompt lookup.");

namespace quire::runtime {
namespace {

absl::StatusOr<kernels::DType> ParseDtype(const std::string& name) {
  if (name == "fp32") return kernels::DType::kF32;
  if (name == "bf16") return kernels::DType::kBF16;
  if (name == "fp16") return kernels::DType::kF16;
  return Unknown("dtype", name, "fp32, bf16, fp16");
}

absl::StatusOr<client::StepMode> ParseMode(const std::string& name) {
  if (name == "stream") return client::StepMode::kStream;
  if (name == "unary") return client::StepMode::kUnary;
  if (name == "lock-step") return client::StepMode::kLockStep;
  return Unknown("mode", name, "stream, unary, lock-step");
}

absl::StatusOr<Admission> ParseAdmission(const std::string& name) {
  if (name == "best-effort") return Admission::kBestEffort;
  if (name == "guaranteed") return Admission::kGuaranteed;
  return Unknown("admission", name, "best-effort, guaranteed");
}

// All ranks run on this machine.
absl::Status CheckWeights(const model::ModelConfig& model) {
  const auto memory =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t weights = model::WeightBytes(model);
  if (weights <= memory) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "layers ", model.layers, ", hidden ", model.hidden, ", q_heads ", model.q_heads,
      ", kv_heads ", model.kv_heads, ", ffn ", model.ffn, ", vocabulary ", model.vocabulary,
      ": weights of ", weights, " bytes, limit: the memory of this machine, ", memory, " bytes"));
}

absl::Status ReadModel(WorkerOptions& options) {
  absl::StatusOr<kernels::DType> dtype = ParseDtype(absl::GetFlag(FLAGS_dtype));
  if (!dtype.ok()) return dtype.status();
  model::ModelConfig& model = options.model;
  model.layers = absl::GetFlag(FLAGS_layers);
  model.hidden = absl::GetFlag(FLAGS_hidden);
  model.q_heads = absl::GetFlag(FLAGS_q_heads);
  model.kv_heads = absl::GetFlag(FLAGS_kv_heads);
  model.head_dim = absl::GetFlag(FLAGS_head_dim);
  model.ffn = absl::GetFlag(FLAGS_ffn);
  model.vocabulary = absl::GetFlag(FLAGS_vocabulary);
  model.kv_dtype = *dtype;
  if (absl::Status status = model::Validate(model); !status.ok()) return status;
  if (absl::Status status = CheckWeights(model); !status.ok()) return status;
  const uint32_t window = absl::GetFlag(FLAGS_window);
  if (window > 0) {
    model.layer_windows = model::FiveToOneWindows(model.layers, window);
  }
  options.model_seed = absl::GetFlag(FLAGS_model_seed);
  absl::StatusOr<model::KernelChoice> kernels = ReadKernels();
  if (!kernels.ok()) return kernels.status();
  options.kernels = *std::move(kernels);
  return absl::OkStatus();
}

absl::Status CheckServer(const std::string& server) {
  const bool good =
      server.starts_with("unix:") ? server.size() > 5 : CheckTcpAddress("server", server).ok();
  if (good) return absl::OkStatus();
  return BadFlag("server", absl::StrCat(server, ": neither unix:/path nor host:port"));
}

absl::Status ReadClient(WorkerOptions& options) {
  absl::StatusOr<client::StepMode> mode = ParseMode(absl::GetFlag(FLAGS_mode));
  if (!mode.ok()) return mode.status();
  client::ClientOptions& client = options.client;
  client.server = absl::GetFlag(FLAGS_server);
  if (absl::Status status = CheckServer(client.server); !status.ok()) return status;
  client.token = absl::GetFlag(FLAGS_token);
  client.worker = absl::GetFlag(FLAGS_name);
  client.pool = absl::GetFlag(FLAGS_pool);
  client.mode = *mode;
  options.prefill_fd = absl::GetFlag(FLAGS_prefill_fd);
  if (options.prefill_fd >= 0) client.mode = client::StepMode::kLockStep;
  const auto lease = ToDuration("lease_seconds", absl::GetFlag(FLAGS_lease_seconds));
  if (!lease.ok()) return lease.status();
  if (*lease > Duration::zero()) client.lease = *lease;
  const auto timeout = ToDuration("server_timeout", absl::GetFlag(FLAGS_server_timeout));
  if (!timeout.ok()) return timeout.status();
  client.retry_budget = *timeout;
  client::ModelLayout layout;
  layout.dtype = static_cast<client::Dtype>(options.model.kv_dtype);
  if (absl::Status status = ReadRanks(options); !status.ok()) return status;
  layout.kv_heads = static_cast<uint32_t>(options.model.kv_heads) / client.ranks;
  layout.head_dim = static_cast<uint32_t>(options.model.head_dim);
  for (int32_t layer = 0; layer < options.model.layers; ++layer) {
    layout.layer_windows.push_back(options.model.window(layer));
  }
  client.layout = layout;
  return absl::OkStatus();
}

absl::Status ReadScheduler(WorkerOptions& options) {
  absl::StatusOr<Admission> admission = ParseAdmission(absl::GetFlag(FLAGS_admission));
  if (!admission.ok()) return admission.status();
  SchedulerOptions& scheduler = options.scheduler;
  scheduler.admission = *admission;
  scheduler.max_sequences = absl::GetFlag(FLAGS_max_sequences);
  scheduler.max_batch_tokens = absl::GetFlag(FLAGS_batch_tokens);
  scheduler.chunk_tokens = absl::GetFlag(FLAGS_chunk_tokens);
  scheduler.steps_in_flight = absl::GetFlag(FLAGS_steps_in_flight);
  scheduler.drafts = absl::GetFlag(FLAGS_drafts);
  scheduler.lag = absl::GetFlag(FLAGS_lag);
  if (scheduler.lag > 0 && options.client.mode == client::StepMode::kLockStep) {
    return absl::InvalidArgumentError("--lag: in --mode=lock-step nothing runs behind a step");
  }
  scheduler.record_logits = absl::GetFlag(FLAGS_verify);
  return Validate(scheduler);
}

// Found out now, not after the work. Processes that it starts have no say.
absl::Status CheckFiles(const WorkerOptions& options) {
  if (options.prefill_fd >= 0 || options.rank_fd >= 0) return absl::OkStatus();
  for (const auto& [flag, path] :
       {std::pair("json", &options.json_file), std::pair("texts", &options.texts_file)}) {
    if (absl::Status status = CheckWritable(flag, *path); !status.ok()) return status;
  }
  return CheckReadable("trace", options.trace_file);
}

absl::Status ReadLimits(WorkerOptions& options) {
  const auto time = ToDuration("seconds", absl::GetFlag(FLAGS_seconds));
  if (!time.ok()) return time.status();
  options.limits.requests = absl::GetFlag(FLAGS_requests);
  const bool unlimited = *time == Duration::zero() && options.limits.requests == 0;
  options.limits.time = unlimited && options.workload != "trace" ? std::chrono::seconds(20) : *time;
  options.limits.in_flight = options.load.users * 2;
  options.verify = absl::GetFlag(FLAGS_verify);
  options.progress = absl::GetFlag(FLAGS_progress);
  options.json_file = absl::GetFlag(FLAGS_json);
  options.texts_file = absl::GetFlag(FLAGS_texts);
  return CheckFiles(options);
}

[[noreturn]] void PrintHelp() {
  std::printf(
      "quire-worker: runs a transformer over block tables of a Quire server.\n\n"
      "  quire-worker --workload=chat --seconds=20 --verify\n\n");
  std::map<std::string, const absl::CommandLineFlag*> flags;
  for (const auto& [name, flag] : absl::GetAllFlags()) {
    if (absl::StrContains(flag->Filename(), "worker/runtime/")) flags[std::string(name)] = flag;
  }
  for (const auto& [name, flag] : flags) {
    std::printf("  --%-20s %s Default: \"%s\".\n", name.c_str(), flag->Help().c_str(),
                flag->DefaultValue().c_str());
  }
  std::printf(
      "\nExit codes: 0 all requests finished and verified, 1 something failed, 2 bad option.\n");
  std::exit(0);
}

}  // namespace

absl::StatusOr<WorkerOptions> ParseFlags(int argc, char** argv) {
  if (HasWord(argc, argv, "help") || HasWord(argc, argv, "h")) PrintHelp();
  const absl::StatusOr<std::vector<std::string>> words = SetFlags(argc, argv);
  if (!words.ok()) return words.status();
  if (!words->empty()) {
    return absl::InvalidArgumentError(absl::StrCat("unexpected argument ", words->front()));
  }
  WorkerOptions options;
  for (auto read : {ReadModel, ReadClient, ReadScheduler, ReadLoad, CheckUses, ReadLimits}) {
    if (absl::Status status = read(options); !status.ok()) return status;
  }
  return options;
}

}  // namespace quire::runtime
