// One StreamSteps call: reads a step, answers it, reads the next.
#ifndef QUIRE_CACHE_SERVICE_RPC_STEP_STREAM_H_
#define QUIRE_CACHE_SERVICE_RPC_STEP_STREAM_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <string>

#include "cache_service/base/mutex.h"
#include "cache_service/rpc/call_runner.h"
#include "cache_service/rpc/pool_registry.h"
#include "cache_service/rpc/step_runner.h"
#include "cache_service/rpc/stream_registry.h"
#include "quire/v1/cache_service.pb.h"

namespace quire {

// Deletes itself when gRPC is done with it. A step is read only once the answer before it is on its
// way, so a caller that does not read its answers holds back nothing but itself. Bytes that are no
// step end the stream with INVALID_ARGUMENT, because they have no number to be answered under.
class StepStream final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                         public EndableStream {
 public:
  StepStream(const PoolRegistry& pools, CallRunner& calls, StreamRegistry& streams,
             grpc::CallbackServerContext* context);

  void End(const grpc::Status& status) override;

 private:
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  absl::Status Answer();
  absl::Status CheckLease(const std::string& lease) const;
  void Read();
  void Write();

  const PoolRegistry& pools_;
  CallRunner& calls_;
  StreamRegistry& streams_;
  grpc::CallbackServerContext* const context_;

  // Of the one step in work.
  grpc::ByteBuffer request_bytes_;
  grpc::ByteBuffer response_bytes_;
  v1::StreamStepsRequest request_;
  v1::StreamStepsResponse response_;
  StepRunner runner_;
  Caller caller_;
  // The lease that the stream serves, once a step of it was accepted.
  std::string lease_;
  std::atomic<bool> broken_{false};

  Mutex mutex_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_RPC_STEP_STREAM_H_
