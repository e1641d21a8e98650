#include "worker/runtime/trace.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "kernels/hash.h"

namespace quire::runtime {
namespace {

bool ParseJson(const std::string& line, TraceRequest& request) {
  const nlohmann::json json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return false;
  const auto number = [&json](const char* name, uint32_t& value) {
    const auto found = json.find(name);
    if (found == json.end() || !found->is_number_unsigned()) return false;
    value = found->get<uint32_t>();
    return true;
  };
  if (!number("input_length", request.input_tokens) ||
      !number("output_length", request.output_tokens)) {
    return false;
  }
  const auto ids = json.find("hash_ids");
  if (ids == json.end() || !ids->is_array()) return false;
  for (const auto& id : *ids) {
    if (!id.is_number_unsigned()) return false;
    request.ids.push_back(id.get<uint32_t>());
  }
  return request.ids.size() == (request.input_tokens + kTraceIdTokens - 1) / kTraceIdTokens;
}

bool ParseCsv(const std::string& line, TraceRequest& request) {
  const std::vector<std::string> fields = absl::StrSplit(line, ',');
  return fields.size() == 3 && absl::SimpleAtoi(fields[1], &request.input_tokens) &&
         absl::SimpleAtoi(fields[2], &request.output_tokens);
}

// Closed loop: as soon as a request ends the next one begins, whatever the time stamps say.
class TraceWorkload final : public Workload {
 public:
  TraceWorkload(std::vector<TraceRequest> trace, const WorkloadOptions& options, uint32_t scale)
      : trace_(std::move(trace)), options_(options), scale_(scale) {}

  std::optional<Request> Next() override {
    if (exhausted() || in_flight_ >= options_.users) return std::nullopt;
    ++in_flight_;
    const TraceRequest& traced = trace_[next_++];
    Request request;
    request.id = next_;
    request.new_tokens = std::clamp(traced.output_tokens / scale_, 1u,
                                    std::max(1u, options_.max_sequence_tokens / 4));
    request.prompt = Prompt(traced);
    const size_t most = options_.max_sequence_tokens - request.new_tokens;
    if (request.prompt.size() > most) request.prompt.resize(most);
    request.sampling = {options_.temperature, options_.seed + request.id};
    return request;
  }

  void OnResult(const RequestResult&) override { --in_flight_; }

  bool exhausted() const override { return next_ >= trace_.size(); }

 private:
  std::vector<TokenId> Prompt(const TraceRequest& traced) const {
    const uint32_t tokens = std::max(1u, traced.input_tokens / scale_);
    const uint32_t per_id = std::max(1u, kTraceIdTokens / scale_);
    std::vector<TokenId> prompt(tokens);
    for (uint32_t i = 0; i < tokens; ++i) {
      // Without ids every prompt is its own.
      const uint64_t content =
          traced.ids.empty() ? (uint64_t{next_} << 32)
                             : traced.ids[std::min<size_t>(i / per_id, traced.ids.size() - 1)];
      const uint64_t place = traced.ids.empty() ? i : i % per_id;
      const uint64_t hash = kernels::Mix64((content + 1) * kernels::kGolden ^ (place << 40));
      prompt[i] = static_cast<TokenId>(hash % options_.vocabulary);
    }
    return prompt;
  }

  const std::vector<TraceRequest> trace_;
  const WorkloadOptions options_;
  const uint32_t scale_;
  size_t next_ = 0;
  uint32_t in_flight_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<TraceRequest>> ReadTrace(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  std::vector<TraceRequest> trace;
  std::string line;
  bool csv = false;
  for (size_t number = 1; std::getline(file, line); ++number) {
    absl::StripTrailingAsciiWhitespace(&line);
    if (line.empty()) continue;
    if (number == 1 && line[0] != '{') {
      csv = true;
      continue;
    }
    TraceRequest request;
    if (!(csv ? ParseCsv(line, request) : ParseJson(line, request)) || request.input_tokens == 0) {
      return absl::InvalidArgumentError(absl::StrCat(path, " line ", number, ": no trace request"));
    }
    trace.push_back(std::move(request));
  }
  if (trace.empty()) return absl::InvalidArgumentError(absl::StrCat(path, " holds no requests"));
  return trace;
}

std::unique_ptr<Workload> MakeTrace(std::vector<TraceRequest> trace, const WorkloadOptions& options,
                                    uint32_t scale) {
  return std::make_unique<TraceWorkload>(std::move(trace), options, scale);
}

}  // namespace quire::runtime
