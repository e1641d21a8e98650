// The administrator's calls of RpcDriver.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/rpc_call.h"
#include "tests/support/rpc_driver.h"
#include "tests/support/rpc_messages.h"

namespace quire::testing {
namespace {

// For calls that cannot fail in a healthy test.
void Must(const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; }

}  // namespace

std::vector<WorkerView> RpcDriver::ListWorkers() {
  std::vector<WorkerView> views;
  v1::ListWorkersRequest request;
  request.set_page_size(1000);
  v1::ListWorkersResponse response;
  Must(Call(*admin_, &v1::AdminService::Stub::ListWorkers, request, &response));
  for (const v1::Worker& worker : response.workers()) views.push_back(FromMessage(worker));
  return views;
}

std::vector<SequenceView> RpcDriver::ListSequences(std::string_view worker) {
  std::vector<SequenceView> views;
  v1::ListSequencesRequest request;
  request.set_worker(std::string(worker));
  v1::ListSequencesResponse response;
  do {
    request.set_page_token(response.next_page_token());
    Must(Call(*admin_, &v1::AdminService::Stub::ListSequences, request, &response));
    for (const v1::Sequence& sequence : response.sequences()) {
      views.push_back(FromMessage(sequence));
    }
  } while (!response.next_page_token().empty());
  return views;
}

absl::StatusOr<SequenceView> RpcDriver::GetSequence(std::string_view worker,
                                                    SequenceHandle handle) {
  v1::GetSequenceRequest request;
  request.set_worker(std::string(worker));
  request.set_handle(handle);
  v1::GetSequenceResponse response;
  const absl::Status status =
      Call(*admin_, &v1::AdminService::Stub::GetSequence, request, &response);
  if (!status.ok()) return status;
  return FromMessage(response.sequence());
}

std::vector<PinView> RpcDriver::ListPins() {
  v1::ListPinsRequest request;
  request.set_page_size(1000);
  v1::ListPinsResponse response;
  Must(Call(*admin_, &v1::AdminService::Stub::ListPins, request, &response));
  std::vector<PinView> views;
  for (const v1::Pin& pin : response.pins()) {
    views.push_back({pin.pin_id(), pin.owner(), pin.blocks(), FromMessage(pin.remaining())});
  }
  return views;
}

EngineStats RpcDriver::Stats() {
  v1::GetPoolResponse response;
  Must(Call(*admin_, &v1::AdminService::Stub::GetPool, v1::GetPoolRequest(), &response));
  return FromMessage(response.pool());
}

absl::StatusOr<PinResult> RpcDriver::PinPrefix(const PrefixSelector& prefix, std::string_view owner,
                                               Duration duration) {
  v1::PinPrefixRequest request;
  *request.mutable_prefix() = ToMessage(prefix);
  request.set_owner(std::string(owner));
  *request.mutable_duration() = ToMessage(duration);
  v1::PinPrefixResponse response;
  const absl::Status status = Call(*admin_, &v1::AdminService::Stub::PinPrefix, request, &response);
  if (!status.ok()) return status;
  return PinResult{response.pin_id(), response.pinned_tokens()};
}

absl::Status RpcDriver::UnpinPrefix(std::string_view pin_id) {
  v1::UnpinPrefixRequest request;
  request.set_pin_id(std::string(pin_id));
  v1::UnpinPrefixResponse response;
  return Call(*admin_, &v1::AdminService::Stub::UnpinPrefix, request, &response);
}

absl::StatusOr<uint64_t> RpcDriver::EvictPrefix(const PrefixSelector& prefix) {
  v1::EvictPrefixRequest request;
  *request.mutable_prefix() = ToMessage(prefix);
  v1::EvictPrefixResponse response;
  const absl::Status status =
      Call(*admin_, &v1::AdminService::Stub::EvictPrefix, request, &response);
  if (!status.ok()) return status;
  return response.blocks();
}

uint64_t RpcDriver::Flush() {
  v1::FlushPoolResponse response;
  Must(Call(*admin_, &v1::AdminService::Stub::FlushPool, v1::FlushPoolRequest(), &response));
  return response.blocks();
}

AuditReport RpcDriver::Audit(bool content) {
  v1::AuditPoolRequest request;
  request.set_content(content);
  v1::AuditPoolResponse response;
  Must(Call(*admin_, &v1::AdminService::Stub::AuditPool, request, &response));
  return FromMessage(response);
}

absl::StatusOr<uint32_t> RpcDriver::EndWorker(std::string_view worker) {
  v1::EndWorkerRequest request;
  request.set_worker(std::string(worker));
  v1::EndWorkerResponse response;
  const absl::Status status = Call(*admin_, &v1::AdminService::Stub::EndWorker, request, &response);
  if (!status.ok()) return status;
  return response.sequences_ended();
}

uint32_t RpcDriver::StartDraining() {
  v1::DrainResponse response;
  Must(Call(*admin_, &v1::AdminService::Stub::Drain, v1::DrainRequest(), &response));
  return response.sequences_running();
}

}  // namespace quire::testing
