#include "worker/runtime/handoff.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <utility>

namespace quire::runtime {

LineSocket::~LineSocket() { close(fd_); }

bool LineSocket::Send(const std::string& line) {
  const std::string message = line + "\n";
  for (size_t sent = 0; sent < message.size() && !closed_;) {
    const ssize_t count = send(fd_, message.data() + sent, message.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) {
      closed_ = true;
    } else {
      sent += static_cast<size_t>(count);
    }
  }
  return !closed_;
}

std::optional<std::string> LineSocket::Receive(int timeout_ms) {
  for (;;) {
    if (const size_t end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    pollfd waiting{fd_, POLLIN, 0};
    if (closed_ || poll(&waiting, 1, timeout_ms) <= 0) return std::nullopt;
    char bytes[4096];
    const ssize_t count = recv(fd_, bytes, sizeof(bytes), 0);
    if (count <= 0) {
      closed_ = true;
      return std::nullopt;
    }
    buffer_.append(bytes, static_cast<size_t>(count));
  }
}

namespace {

// The other process computes the prompt itself.
bool IsLeftToTheOther(const absl::Status& status) {
  if (!client::HasReason(status)) return false;
  return ReasonOf(status) == Reason::kPoolExhausted || ReasonOf(status) == Reason::kDraining;
}

}  // namespace

absl::Status ServePrefill(PrefillWorker& worker, int fd) {
  LineSocket socket(fd);
  while (const std::optional<std::string> line = socket.Receive(-1)) {
    const nlohmann::json message = nlohmann::json::parse(*line, nullptr, false);
    if (message.contains("release")) {
      const absl::Status status = worker.Release(message["release"].get<uint64_t>());
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

}  // namespace quire::runtime
