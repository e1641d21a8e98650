#include "worker/client/step_transport.h"

#include <condition_variable>
#include <deque>
#include <thread>
#include <utility>

#include "cache_service/base/mutex.h"
#include "worker/client/proto_convert.h"
#include "worker/client/types.h"

namespace quire::client {
namespace {

StepReply FromProto(v1::StreamStepsResponse& response) {
  StepReply reply;
  if (response.has_refusal()) {
    const v1::StepRefusal& refusal = response.refusal();
    reply.step = refusal.step();
    reply.refusal = ToStatus(client::FromProto(refusal.error()));
    return reply;
  }
  reply.answer.Swap(response.mutable_answer());
  reply.step = reply.answer.step();
  return reply;
}

class StreamTransport final : public StepTransport {
 public:
  explicit StreamTransport(std::unique_ptr<StepChannel> channel)
      : channel_(std::move(channel)), reader_([this] { Read(); }) {}

  ~StreamTransport() override {
    channel_->Cancel();
    reader_.join();
  }

  bool Send(const v1::StepBatch& step) override { return channel_->Send(step); }

  Event Next(StepReply& reply, std::chrono::nanoseconds wait) override {
    MutexLock lock(mutex_);
    const auto until = std::chrono::steady_clock::now() + wait;
    while (!broken_ && replies_.empty() &&
           arrived_.wait_until(mutex_, until) == std::cv_status::no_timeout) {
    }
    if (!replies_.empty()) {
      reply = std::move(replies_.front());
      replies_.pop_front();
      return Event::kReply;
    }
    return broken_ ? Event::kBroken : Event::kTimeout;
  }

  absl::Status status() override {
    // A send can fail a moment before the reader has learnt why.
    MutexLock lock(mutex_);
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
    while (!broken_ && arrived_.wait_until(mutex_, until) == std::cv_status::no_timeout) {
    }
    return broken_ ? status_ : absl::UnavailableError("the stream broke");
  }

 private:
  void Read() {
    v1::StreamStepsResponse response;
    while (channel_->Receive(response)) {
      StepReply reply = FromProto(response);
      {
        MutexLock lock(mutex_);
        replies_.push_back(std::move(reply));
      }
      arrived_.notify_one();
    }
    absl::Status status = channel_->status();
    {
      MutexLock lock(mutex_);
      status_ = status.ok() ? absl::UnavailableError("the server ended the stream") : status;
      broken_ = true;
    }
    arrived_.notify_one();
  }

  const std::unique_ptr<StepChannel> channel_;
  Mutex mutex_;
  std::condition_variable_any arrived_;
  std::deque<StepReply> replies_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread reader_;
};

class UnaryTransport final : public StepTransport {
 public:
  UnaryTransport(Connection& connection, std::chrono::nanoseconds timeout)
      : connection_(connection), timeout_(timeout) {}

  bool Send(const v1::StepBatch& step) override {
    v1::StepRequest request;
    *request.mutable_step() = step;
    absl::StatusOr<v1::StepResponse> response = connection_.Step(request, timeout_);
    StepReply reply;
    reply.step = step.step();
    if (response.ok()) {
      reply.answer.Swap(response->mutable_answer());
    } else if (HasReason(response.status())) {
      reply.refusal = response.status();
    } else {
      // Nobody knows whether the server handled it: to be sent again with the same number.
      status_ = response.status();
      return false;
    }
    replies_.push_back(std::move(reply));
    return true;
  }

  Event Next(StepReply& reply, std::chrono::nanoseconds) override {
    if (replies_.empty()) return status_.ok() ? Event::kTimeout : Event::kBroken;
    reply = std::move(replies_.front());
    replies_.pop_front();
    return Event::kReply;
  }

  absl::Status status() override { return status_; }

 private:
  Connection& connection_;
  const std::chrono::nanoseconds timeout_;
  std::deque<StepReply> replies_;
  absl::Status status_;
};

}  // namespace

std::unique_ptr<StepTransport> OpenStream(Connection& connection) {
  return std::make_unique<StreamTransport>(connection.OpenSteps());
}

std::unique_ptr<StepTransport> OpenUnary(Connection& connection, std::chrono::nanoseconds timeout) {
  return std::make_unique<UnaryTransport>(connection, timeout);
}

}  // namespace quire::client
