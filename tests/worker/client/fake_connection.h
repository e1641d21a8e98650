// A server that a test scripts, good for the client's state machine: it keeps step numbers as a
// server does, answers what the test says, and can lose answers, break streams and refuse.
#ifndef QUIRE_TESTS_WORKER_CLIENT_FAKE_CONNECTION_H_
#define QUIRE_TESTS_WORKER_CLIENT_FAKE_CONNECTION_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "worker/client/connection.h"

namespace quire::client {

inline v1::StepRefusal Refusal(uint64_t step, v1::ErrorReason reason) {
  v1::StepRefusal refusal;
  refusal.set_step(step);
  refusal.mutable_error()->set_reason(reason);
  refusal.mutable_error()->set_message("refused by the test");
  return refusal;
}

// Thread-safe; outlives its channels.
class FakeConnection final : public Connection {
 public:
  // Fills the answer of a step that is executed for the first time.
  using Script = std::function<void(const v1::StepBatch&, v1::StepAnswer&)>;

  FakeConnection() {
    attach_.set_lease_id("lease");
    attach_.set_epoch(7);
    attach_.set_pool("default");
    attach_.set_block_tokens(4);
    attach_.set_block_count(100);
    attach_.add_groups()->set_kind(v1::GROUP_KIND_FULL);
    attach_.mutable_lease_duration()->set_seconds(600);
    attach_.set_max_steps_in_flight(4);
    attach_.set_max_sequence_tokens(400);
    attach_.set_max_operations_per_step(64);
    attach_.set_expected_step(1);
  }

  // --- What the test sets ---
  v1::AttachWorkerResponse& attach() { return attach_; }

  void set_script(Script script) { script_ = std::move(script); }

  // The next `count` sends reach the server, but the stream breaks instead of an answer.
  void BreakStreams(int count) {
    std::lock_guard lock(mutex_);
    breaks_ = count;
  }

  // The next `count` sends reach the server; their answers get lost without a sign.
  void LoseAnswers(int count) {
    std::lock_guard lock(mutex_);
    losses_ = count;
  }

  // The next steps are refused with these reasons, one after another, without being executed.
  void Refuse(std::vector<v1::ErrorReason> reasons) {
    std::lock_guard lock(mutex_);
    refusals_.assign(reasons.begin(), reasons.end());
  }

  // --- What the test reads ---
  std::vector<v1::StepBatch> received() {
    std::lock_guard lock(mutex_);
    return received_;
  }

  std::vector<v1::AttachWorkerRequest> attaches() {
    std::lock_guard lock(mutex_);
    return attaches_;
  }

  int streams() {
    std::lock_guard lock(mutex_);
    return streams_;
  }

  int executed() {
    std::lock_guard lock(mutex_);
    return executed_;
  }

  int detaches() {
    std::lock_guard lock(mutex_);
    return detaches_;
  }

  // --- Connection ---
  absl::StatusOr<v1::AttachWorkerResponse> Attach(const v1::AttachWorkerRequest& request,
                                                  Timeout) override {
    std::lock_guard lock(mutex_);
    attaches_.push_back(request);
    stored_.clear();
    return attach_;
  }

  absl::StatusOr<v1::RenewLeaseResponse> Renew(const v1::RenewLeaseRequest&, Timeout) override {
    v1::RenewLeaseResponse response;
    response.mutable_lease_duration()->set_seconds(600);
    return response;
  }

  absl::Status Detach(const v1::DetachWorkerRequest&, Timeout) override {
    std::lock_guard lock(mutex_);
    ++detaches_;
    return absl::OkStatus();
  }

  absl::StatusOr<v1::StepResponse> Step(const v1::StepRequest& request, Timeout) override {
    v1::StreamStepsResponse streamed;
    if (!Handle(request.step(), streamed)) return absl::UnavailableError("connection lost");
    if (streamed.has_refusal()) return absl::InternalError("refusals are tried on a stream");
    v1::StepResponse response;
    response.mutable_answer()->Swap(streamed.mutable_answer());
    return response;
  }

  absl::StatusOr<v1::GetBlockTableResponse> GetBlockTable(const v1::GetBlockTableRequest&,
                                                          Timeout) override {
    return absl::UnimplementedError("not scripted");
  }

  absl::StatusOr<v1::PeekPrefixResponse> PeekPrefix(const v1::PeekPrefixRequest&,
                                                    Timeout) override {
    return absl::UnimplementedError("not scripted");
  }

  void WaitForServer(Timeout pause) override { std::this_thread::sleep_for(pause); }

  std::unique_ptr<StepChannel> OpenSteps() override {
    std::lock_guard lock(mutex_);
    ++streams_;
    return std::make_unique<Channel>(*this);
  }

 private:
  class Channel final : public StepChannel {
   public:
    explicit Channel(FakeConnection& server) : server_(server) {}

    bool Send(const v1::StepBatch& step) override {
      v1::StreamStepsResponse response;
      const bool alive = server_.Handle(step, response);
      std::lock_guard lock(mutex_);
      if (!alive) broken_ = true;
      if (response.has_answer() || response.has_refusal()) responses_.push_back(response);
      changed_.notify_all();
      return !broken_;
    }

    bool Receive(v1::StreamStepsResponse& response) override {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return broken_ || !responses_.empty(); });
      if (responses_.empty()) return false;
      response = responses_.front();
      responses_.pop_front();
      return true;
    }

    void Cancel() override {
      std::lock_guard lock(mutex_);
      broken_ = true;
      changed_.notify_all();
    }

    absl::Status status() override { return absl::UnavailableError("stream broken"); }

   private:
    FakeConnection& server_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<v1::StreamStepsResponse> responses_;
    bool broken_ = false;
  };

  // False: the transport breaks. An empty response: the answer is lost.
  bool Handle(const v1::StepBatch& step, v1::StreamStepsResponse& response) {
    std::lock_guard lock(mutex_);
    received_.push_back(step);
    if (!refusals_.empty()) {
      *response.mutable_refusal() = Refusal(step.step(), refusals_.front());
      refusals_.pop_front();
      return true;
    }
    const auto [stored, first] = stored_.try_emplace(step.step());
    if (first) {
      stored->second.set_step(step.step());
      if (script_ != nullptr) script_(step, stored->second);
      ++executed_;
    }
    if (breaks_ > 0) return --breaks_, false;
    if (losses_ > 0) return --losses_, true;
    *response.mutable_answer() = stored->second;
    return true;
  }

  std::mutex mutex_;
  v1::AttachWorkerResponse attach_;
  Script script_;
  int breaks_ = 0;
  int losses_ = 0;
  std::deque<v1::ErrorReason> refusals_;
  std::map<uint64_t, v1::StepAnswer> stored_;
  std::vector<v1::StepBatch> received_;
  std::vector<v1::AttachWorkerRequest> attaches_;
  int streams_ = 0;
  int executed_ = 0;
  int detaches_ = 0;
};

}  // namespace quire::client

#endif  // QUIRE_TESTS_WORKER_CLIENT_FAKE_CONNECTION_H_
