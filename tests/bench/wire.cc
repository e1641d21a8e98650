#include "tests/bench/wire.h"

#include <cstdio>
#include <cstdlib>

#include "worker/client/connection.h"
#include "worker/client/server_wait.h"

namespace quire::bench {

std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

// --- WireWorker ---

client::ClientOptions BenchClientOptions(const std::string& address, const std::string& name) {
  client::ClientOptions options;
  options.server = address;
  options.worker = name;
  options.model_fingerprint = "bench";
  // The smallest block that there is.
  options.layout = client::ModelLayout{};
  options.layout->kv_heads = 1;
  options.layout->head_dim = 64;
  options.layout->layer_windows = {0};
  options.lease = std::chrono::minutes(10);
  return options;
}

WireWorker::WireWorker(const std::string& address, const std::string& name, Form form)
    : form_(form), stub_(v1::CacheService::NewStub(Connect(address))) {
  const client::ClientOptions options = BenchClientOptions(address, name);
  const SystemClock clock;
  client::ServerWait wait(options.retry_budget, nullptr, clock);
  auto attached = client::AttachWorker(*client::ConnectGrpc(address, ""), options, 1, clock, wait);
  if (!attached.ok()) Fail(std::string(attached.status().message()));
  attachment_ = *std::move(attached);
  if (form_ == Form::kStream) stream_ = stub_->StreamSteps(&context_);
}

void WireWorker::Fail(const std::string& what) const {
  std::fprintf(stderr, "quire-bench: step %llu: %s\n", static_cast<unsigned long long>(step_),
               what.substr(0, 500).c_str());
  std::exit(2);
}

v1::StepBatch& WireWorker::Prepare() {
  v1::StepBatch& batch =
      form_ == Form::kStream ? *request_.mutable_step() : *unary_request_.mutable_step();
  batch.clear_operations();
  batch.set_lease_id(attachment_.info.lease_id);
  batch.set_epoch(attachment_.info.epoch);
  batch.set_step(++step_);
  batch.set_applied_step(applied_);
  batch.set_completed_step(applied_);
  return batch;
}

void WireWorker::Send() {
  if (!stream_->Write(request_)) Fail("the stream broke");
}

const v1::StepAnswer& WireWorker::Receive() {
  if (!stream_->Read(&response_)) Fail("the stream broke");
  if (!response_.has_answer()) Fail(response_.refusal().ShortDebugString());
  if (response_.answer().failures_size() > 0) {
    Fail(response_.answer().failures(0).ShortDebugString());
  }
  applied_ = response_.answer().step();
  return response_.answer();
}

const v1::StepAnswer& WireWorker::Call() {
  if (form_ == Form::kStream) {
    Send();
    return Receive();
  }
  grpc::ClientContext context;
  const grpc::Status status = stub_->Step(&context, unary_request_, &unary_response_);
  if (!status.ok()) Fail(status.error_message());
  if (unary_response_.answer().failures_size() > 0) Fail("an operation failed");
  applied_ = step_;
  return unary_response_.answer();
}

size_t WireWorker::sent_bytes() const {
  return form_ == Form::kStream ? request_.ByteSizeLong() : unary_request_.ByteSizeLong();
}

size_t WireWorker::received_bytes() const {
  return form_ == Form::kStream ? response_.ByteSizeLong() : unary_response_.ByteSizeLong();
}

// --- EchoCaller ---

EchoCaller::EchoCaller(const std::string& address, Form form)
    : form_(form), stub_(EchoService::NewStub(Connect(address))) {
  if (form_ == Form::kStream) stream_ = stub_->StreamEcho(&context_);
}

void EchoCaller::Prepare(size_t request_bytes, size_t answer_bytes) {
  request_.mutable_payload()->resize(request_bytes);
  request_.set_answer_bytes(static_cast<uint32_t>(answer_bytes));
}

void EchoCaller::Call() {
  bool ok = false;
  if (form_ == Form::kStream) {
    ok = stream_->Write(request_) && stream_->Read(&response_);
  } else {
    grpc::ClientContext context;
    ok = stub_->Echo(&context, request_, &response_).ok();
  }
  if (ok) return;
  std::fprintf(stderr, "quire-bench: the echo failed\n");
  std::exit(2);
}

}  // namespace quire::bench
