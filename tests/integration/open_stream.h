// A stream of steps that a test leads by the hand.
#ifndef QUIRE_TESTS_INTEGRATION_OPEN_STREAM_H_
#define QUIRE_TESTS_INTEGRATION_OPEN_STREAM_H_

#include <memory>

#include "gtest/gtest.h"
#include "tests/support/test_server.h"

namespace quire::testing {

// One open stream of a lease.
class OpenStream {
 public:
  OpenStream(TestServer& server, const v1::AttachWorkerResponse& attached)
      : attached_(attached), calls_(server.cache().StreamSteps(&context_)) {}

  // With a handle: begins a sequence of one token.
  bool Send(uint64_t step, uint64_t handle = 0) { return SendFor(attached_, step, handle); }

  bool SendFor(const v1::AttachWorkerResponse& attached, uint64_t step, uint64_t handle = 0) {
    v1::StreamStepsRequest request;
    request.mutable_step()->set_lease_id(attached.lease_id());
    request.mutable_step()->set_epoch(attached.epoch());
    request.mutable_step()->set_step(step);
    if (handle != 0) {
      v1::BeginOperation* begin = request.mutable_step()->add_operations()->mutable_begin();
      begin->set_sequence(handle);
      begin->add_tokens(static_cast<uint32_t>(handle));
    }
    return calls_->Write(request);
  }

  v1::StreamStepsResponse Receive() {
    v1::StreamStepsResponse response;
    EXPECT_TRUE(calls_->Read(&response));
    return response;
  }

  // Waits for the server's end of the stream.
  grpc::Status Finish() {
    v1::StreamStepsResponse ignored;
    while (calls_->Read(&ignored)) {
    }
    return calls_->Finish();
  }

  void CloseSendingSide() { calls_->WritesDone(); }

  void Break() { context_.TryCancel(); }

 private:
  const v1::AttachWorkerResponse attached_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::StreamStepsRequest, v1::StreamStepsResponse>> calls_;
};

}  // namespace quire::testing

#endif  // QUIRE_TESTS_INTEGRATION_OPEN_STREAM_H_
