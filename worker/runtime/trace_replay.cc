#include "worker/runtime/trace_replay.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace quire::runtime {
namespace {

// Tokens that belong to one request only are counted down from the top of the 32 bits.
class Replayer {
 public:
  Replayer(client::CacheClient& client, ReplayReport& report) : client_(client), report_(report) {}

  absl::Status Replay(const TraceRequest& request) {
    client::Step step;
    client::BeginParams begin;
    begin.sequence = ++handle_;
    begin.tokens = Prompt(request);
    const auto length = static_cast<uint32_t>(begin.tokens.size());
    const client::OperationId id = step.Begin(std::move(begin));
    absl::StatusOr<client::StepAnswer> answer = Send(std::move(step));
    if (!answer.ok()) return answer.status();
    const client::BeginResult* result = answer->BeginOf(id);
    if (result == nullptr) return FirstFailure(*answer);
    ++report_.requests;
    const uint32_t block = client_.pool().block_tokens;
    report_.requested_blocks += request.ids.empty() ? length / block : request.ids.size();
    report_.hit_blocks += result->reused_tokens / block;
    return End(request, length);
  }

 private:
  std::vector<client::TokenId> Prompt(const TraceRequest& request) {
    std::vector<client::TokenId> tokens;
    for (const uint32_t id : request.ids) {
      for (uint32_t i = 0; i < kTraceIdTokens; ++i) tokens.push_back(id * kTraceIdTokens + i);
    }
    if (!request.ids.empty()) {
      tokens.push_back(own_--);
    } else {
      for (uint32_t i = 0; i < request.input_tokens; ++i) tokens.push_back(own_--);
    }
    return tokens;
  }

  absl::Status End(const TraceRequest& request, uint32_t length) {
    if (request.ids.empty() && request.output_tokens > 0) {
      std::vector<client::TokenId> output;
      for (uint32_t i = 0; i < request.output_tokens; ++i) output.push_back(own_--);
      client::Step step;
      step.Advance(handle_, length, output);
      absl::StatusOr<client::StepAnswer> answer = Send(std::move(step));
      if (!answer.ok()) return answer.status();
      if (!answer->failures.empty()) return FirstFailure(*answer);
      length += request.output_tokens;
    }
    if (const client::SequenceState* state = client_.tables().Find(handle_)) {
      report_.slots += state->tables[0].size() * uint64_t{client_.pool().block_tokens};
      report_.tokens += length;
    }
    client::Step step;
    step.Commit(handle_, length, length);
    step.Finish(handle_);
    absl::StatusOr<client::StepAnswer> answer = Send(std::move(step));
    if (!answer.ok()) return answer.status();
    return answer->failures.empty() ? absl::OkStatus() : FirstFailure(*answer);
  }

  absl::StatusOr<client::StepAnswer> Send(client::Step step) {
    absl::StatusOr<client::StepNumber> number = client_.Submit(std::move(step));
    if (!number.ok()) return number.status();
    absl::StatusOr<client::AppliedStep> applied = client_.Wait();
    if (!applied.ok()) return applied.status();
    // Nothing is computed, so nothing can still run.
    if (absl::Status status = client_.Complete(*number); !status.ok()) return status;
    return std::move(applied->answer);
  }

  static absl::Status FirstFailure(const client::StepAnswer& answer) {
    if (answer.failures.empty()) return absl::InternalError("an answer without a result");
    return ToStatus(answer.failures[0].error);
  }

  client::CacheClient& client_;
  ReplayReport& report_;
  client::SequenceHandle handle_ = 0;
  client::TokenId own_ = 0xFFFFFFFFu;
};

double Ratio(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

double ReplayReport::hit_rate() const { return Ratio(hit_blocks, requested_blocks); }

double ReplayReport::internal_waste() const { return Ratio(slots - tokens, slots); }

absl::StatusOr<ReplayReport> ReplayTrace(client::CacheClient& client,
                                         const std::vector<TraceRequest>& trace, uint64_t limit,
                                         const std::function<void(const ReplayReport&)>& progress) {
  const bool by_id = !trace.empty() && !trace[0].ids.empty();
  if (by_id && client.pool().block_tokens != kTraceIdTokens) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the pool has blocks of ", client.pool().block_tokens, " tokens, not ", kTraceIdTokens));
  }
  ReplayReport report;
  Replayer replayer(client, report);
  const auto start = std::chrono::steady_clock::now();
  for (const TraceRequest& request : trace) {
    if (limit > 0 && report.requests >= limit) break;
    if (absl::Status status = replayer.Replay(request); !status.ok()) return status;
    report.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (progress != nullptr) progress(report);
  }
  return report;
}

std::string ToLine(const ReplayReport& report) {
  return absl::StrFormat("%5.1f s  %5d requests  hit rate %.4f", report.seconds, report.requests,
                         report.hit_rate());
}

std::string ToText(const ReplayReport& report) {
  return absl::StrFormat(
      "workload:         trace without model, %.1f s\n"
      "requests:         %d\n"
      "prefix hit rate:  %.4f (%d of %d blocks)\n"
      "internal waste:   %.2f %% of slots\n",
      report.seconds, report.requests, report.hit_rate(), report.hit_blocks,
      report.requested_blocks, 100 * report.internal_waste());
}

std::string ToJson(const ReplayReport& report) {
  const nlohmann::ordered_json json = {{"workload", "trace without model"},
                                       {"seconds", report.seconds},
                                       {"requests", report.requests},
                                       {"requested_blocks", report.requested_blocks},
                                       {"hit_blocks", report.hit_blocks},
                                       {"prefix_hit_rate", report.hit_rate()},
                                       {"internal_waste", report.internal_waste()}};
  return json.dump(2) + "\n";
}

}  // namespace quire::runtime
