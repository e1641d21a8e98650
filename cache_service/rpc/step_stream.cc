#include "cache_service/rpc/step_stream.h"

#include "cache_service/base/error.h"
#include "cache_service/rpc/status_convert.h"
#include "cache_service/rpc/wire_message.h"

namespace quire {
namespace {

// Whether the engine has seen the step's lease and epoch and found them good.
bool LeaseIsGood(const absl::Status& status) {
  return status.ok() || ReasonOf(status) == Reason::kStepOutOfOrder;
}

void FillRefusal(uint64_t step, const absl::Status& status, v1::StreamStepsResponse* response) {
  v1::StepRefusal* refusal = response->mutable_refusal();
  refusal->Clear();
  refusal->set_step(step);
  refusal->set_code(static_cast<int32_t>(ToGrpcStatus(status).error_code()));
  FillOperationError(FromStatus(status), refusal->mutable_error());
}

}  // namespace

StepStream::StepStream(const PoolRegistry& pools, CallRunner& calls, StreamRegistry& streams,
                       grpc::CallbackServerContext* context)
    : pools_(pools), calls_(calls), streams_(streams), context_(context) {
  streams_.Add(this);
  absl::StatusOr<Caller> caller = calls_.Admit(*context, RpcMethod::kStreamSteps);
  if (!caller.ok()) {
    const grpc::Status status = ToGrpcStatus(caller.status());
    calls_.Record(RpcMethod::kStreamSteps, status, calls_.clock().Now());
    End(status);
    return;
  }
  caller_ = *std::move(caller);
  Read();
}

void StepStream::Read() {
  MutexLock lock(mutex_);
  if (!ended_) StartRead(&request_bytes_);
}

void StepStream::Write() {
  MutexLock lock(mutex_);
  if (!ended_) StartWrite(&response_bytes_);
}

void StepStream::End(const grpc::Status& status) {
  MutexLock lock(mutex_);
  if (ended_) return;
  ended_ = true;
  Finish(status);
}

void StepStream::OnReadDone(bool ok) {
  if (!ok) {
    // Either the caller has sent its last step, or the connection is gone.
    if (context_->IsCancelled()) broken_ = true;
    End(grpc::Status::OK);
    return;
  }
  if (const absl::Status wanted = CallRunner::StillWanted(*context_); !wanted.ok()) {
    End(ToGrpcStatus(wanted));
    return;
  }
  const TimePoint start = calls_.clock().Now();
  if (const absl::Status parsed = Parse(request_bytes_, &request_); !parsed.ok()) {
    const grpc::Status status = ToGrpcStatus(parsed);
    calls_.Record(RpcMethod::kStreamSteps, status, start);
    End(status);
    return;
  }
  const absl::Status status = CallRunner::WithinMemory([this] { return Answer(); });
  if (!status.ok()) FillRefusal(request_.step().step(), status, &response_);
  Serialize(response_, &response_bytes_);
  calls_.Record(RpcMethod::kStreamSteps, ToGrpcStatus(status), start);
  Write();
}

absl::Status StepStream::CheckLease(const std::string& lease) const {
  if (lease_.empty() || lease_ == lease) return absl::OkStatus();
  return ToStatus(InvalidArgument("lease_id", "another lease than the stream's earlier steps"));
}

absl::Status StepStream::Answer() {
  const v1::StepBatch& batch = request_.step();
  if (absl::Status status = CheckLease(batch.lease_id()); !status.ok()) return status;
  v1::StepAnswer* answer = response_.mutable_answer();
  answer->Clear();
  absl::Status status = runner_.Run(pools_, batch, caller_, answer);
  if (lease_.empty() && LeaseIsGood(status)) {
    lease_ = batch.lease_id();
    streams_.Serve(lease_, this);
  }
  return status;
}

void StepStream::OnWriteDone(bool ok) {
  if (ok) {
    Read();
    return;
  }
  broken_ = true;
  End(grpc::Status(grpc::StatusCode::CANCELLED, "the caller is gone"));
}

void StepStream::OnCancel() {
  broken_ = true;
  End(grpc::Status(grpc::StatusCode::CANCELLED, "the caller is gone"));
}

void StepStream::OnDone() {
  const bool served = streams_.Remove(lease_, this);
  if (served && broken_) {
    const auto leased = pools_.FindByLease(lease_, pools_.epoch());
    if (leased.ok()) leased->engine->StreamBroken(leased->lease);
  }
  delete this;
}

}  // namespace quire
