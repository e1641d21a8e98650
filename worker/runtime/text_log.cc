#include "worker/runtime/text_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace quire::runtime {

absl::StatusOr<std::unique_ptr<TextLog>> TextLog::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
  return std::unique_ptr<TextLog>(new TextLog(fd));
}

TextLog::~TextLog() { close(fd_); }

absl::Status TextLog::Write(const RequestResult& result) {
  nlohmann::json outputs = nlohmann::json::array();
  for (const Generated& output : result.outputs) outputs.push_back(output.tokens);
  const std::string line = nlohmann::json({{"id", result.request.id},
                                           {"seed", result.request.sampling.seed},
                                           {"temperature", result.request.sampling.temperature},
                                           {"prompt", result.request.prompt},
                                           {"outputs", std::move(outputs)}})
                               .dump() +
                           "\n";
  if (write(fd_, line.data(), line.size()) == static_cast<ssize_t>(line.size())) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno, "cannot write a text");
}

absl::StatusOr<std::vector<RequestResult>> ReadTexts(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  std::vector<RequestResult> results;
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) continue;
    RequestResult& result = results.emplace_back();
    result.request.id = json["id"].get<uint64_t>();
    result.request.sampling = {json["temperature"].get<float>(), json["seed"].get<uint64_t>()};
    result.request.prompt = json["prompt"].get<std::vector<TokenId>>();
    for (const nlohmann::json& output : json["outputs"]) {
      result.outputs.push_back({.tokens = output.get<std::vector<TokenId>>(), .logits = {}});
    }
  }
  return results;
}

void LoggedWorkload::OnResult(const RequestResult& result) {
  if (result.status.ok()) {
    const absl::Status status = log_->Write(result);
    if (!status.ok()) std::cerr << status.message() << "\n";
  }
  inner_->OnResult(result);
}

}  // namespace quire::runtime
