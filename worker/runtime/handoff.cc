#include "worker/runtime/handoff.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace quire::runtime {

namespace {

// The other process computes the prompt itself.
bool IsLeftToTheOther(const absl::Status& status) {
  if (!client::HasReason(status)) return false;
  return ReasonOf(status) == Reason::kPoolExhausted || ReasonOf(status) == Reason::kDraining;
}

absl::Status Release(PrefillWorker& worker, const nlohmann::json& which) {
  return which == "all" ? worker.ReleaseAll() : worker.Release(which.get<uint64_t>());
}

}  // namespace

absl::Status ServePrefill(PrefillWorker& worker, int fd) {
  LineSocket socket(fd);
  while (const std::optional<std::string> line = socket.Receive(-1)) {
    const nlohmann::json message = nlohmann::json::parse(*line, nullptr, false);
    if (message.contains("release")) {
      const absl::Status status = Release(worker, message["release"]);
      if (!status.ok()) return status;
      continue;
    }
    if (!message.contains("id") || !message.contains("prompt")) {
      return absl::InvalidArgumentError("the other process sent no request");
    }
    const auto id = message["id"].get<uint64_t>();
    const absl::Status status = worker.Compute(id, message["prompt"].get<std::vector<TokenId>>());
    if (!status.ok() && !IsLeftToTheOther(status)) return status;
    socket.Send(nlohmann::json({{"done", id}}).dump());
  }
  return absl::OkStatus();
}

// Nobody computes prompts any more.
void HandoffWorkload::TakeAllBack() {
  for (auto& [id, request] : asked_) ready_.push_back(std::move(request));
  asked_.clear();
}

std::optional<Request> HandoffWorkload::Next() {
  while (std::optional<Request> request = inner_->Next()) {
    socket_.Send(nlohmann::json({{"id", request->id}, {"prompt", request->prompt}}).dump());
    const uint64_t id = request->id;
    asked_[id] = *std::move(request);
  }
  while (const std::optional<std::string> line = socket_.Receive(0)) {
    const nlohmann::json message = nlohmann::json::parse(*line, nullptr, false);
    if (!message.contains("done")) continue;
    const auto found = asked_.find(message["done"].get<uint64_t>());
    if (found == asked_.end()) continue;
    ready_.push_back(std::move(found->second));
    asked_.erase(found);
  }
  if (socket_.closed()) TakeAllBack();
  if (ready_.empty()) return std::nullopt;
  Request request = std::move(ready_.front());
  ready_.pop_front();
  return request;
}

void HandoffWorkload::OnBegun(const Request& request) {
  socket_.Send(nlohmann::json({{"release", request.id}}).dump());
}

// One that failed may never have begun.
void HandoffWorkload::OnResult(const RequestResult& result) {
  if (!result.status.ok()) OnBegun(result.request);
  inner_->OnResult(result);
}

void HandoffWorkload::OnDraining() { socket_.Send(nlohmann::json({{"release", "all"}}).dump()); }

}  // namespace quire::runtime
