// Leases, sequences and lengths that are not what the caller thinks, by every call and operation
// that names them.
#include <chrono>
#include <fstream>
#include <thread>
#include <utility>
#include <vector>

#include "tests/integration/bad_input.h"

namespace quire::testing {
namespace {

using Fill = std::function<void(v1::Operation&, uint64_t sequence, uint32_t start_length)>;

// Every operation on an existing sequence.
std::vector<std::pair<const char*, Fill>> Operations() {
  return {{"advance",
           [](v1::Operation& op, uint64_t sequence, uint32_t start_length) {
             op.mutable_advance()->add_sequences(sequence);
             op.mutable_advance()->add_start_lengths(start_length);
             op.mutable_advance()->add_tokens(1);
           }},
          {"extend",
           [](v1::Operation& op, uint64_t sequence, uint32_t start_length) {
             op.mutable_extend()->set_sequence(sequence);
             op.mutable_extend()->set_start_length(start_length);
             op.mutable_extend()->set_slots(8);
           }},
          {"commit",
           [](v1::Operation& op, uint64_t sequence, uint32_t start_length) {
             op.mutable_commit()->set_sequence(sequence);
             op.mutable_commit()->set_start_length(start_length);
             op.mutable_commit()->set_committed_length(6);
           }},
          {"fork",
           [](v1::Operation& op, uint64_t sequence, uint32_t start_length) {
             op.mutable_fork()->set_sequence(sequence);
             op.mutable_fork()->set_start_length(start_length);
             op.mutable_fork()->add_children(50);
           }},
          {"truncate", [](v1::Operation& op, uint64_t sequence, uint32_t start_length) {
             op.mutable_truncate()->set_sequence(sequence);
             op.mutable_truncate()->set_start_length(start_length);
             op.mutable_truncate()->set_length(2);
           }}};
}

// The status of each call that names a lease.
std::vector<grpc::Status> CallsOf(TestServer& server, const std::string& lease, uint64_t epoch,
                                  const std::string& token = "") {
  v1::StepRequest step;
  step.mutable_step()->set_lease_id(lease);
  step.mutable_step()->set_epoch(epoch);
  step.mutable_step()->set_step(1);
  v1::StepResponse stepped;
  v1::RenewLeaseRequest renew;
  renew.set_lease_id(lease);
  renew.set_epoch(epoch);
  v1::RenewLeaseResponse renewed;
  v1::GetBlockTableRequest table;
  table.set_lease_id(lease);
  table.set_epoch(epoch);
  v1::GetBlockTableResponse tables;
  v1::DetachWorkerRequest detach;
  detach.set_lease_id(lease);
  detach.set_epoch(epoch);
  v1::DetachWorkerResponse detached;
  using Stub = v1::CacheService::Stub;
  return {server.Call(server.cache(), &Stub::Step, step, &stepped, token),
          server.Call(server.cache(), &Stub::RenewLease, renew, &renewed, token),
          server.Call(server.cache(), &Stub::GetBlockTable, table, &tables, token),
          server.Call(server.cache(), &Stub::DetachWorker, detach, &detached, token)};
}

TEST_F(BadInputTest, UnknownLeaseInEveryCall) {
  const uint64_t epoch = worker_.attached().epoch();
  for (const char* lease : {"", "0-nobody", "1-nobody", "-", "x", "0"}) {
    for (const grpc::Status& status : CallsOf(server_, lease, epoch)) {
      EXPECT_THAT(status, IsRefused(grpc::FAILED_PRECONDITION, "LEASE_EXPIRED")) << lease;
    }
  }
  ExpectUntouched();
}

TEST_F(BadInputTest, WrongEpochInEveryCall) {
  for (const uint64_t epoch : {worker_.attached().epoch() + 1, ~uint64_t{0}}) {
    for (const grpc::Status& status : CallsOf(server_, worker_.attached().lease_id(), epoch)) {
      EXPECT_THAT(status, IsRefused(grpc::FAILED_PRECONDITION, "EPOCH_MISMATCH"));
      EXPECT_EQ(NumberIn(status, "given"), std::to_string(epoch));
    }
  }
  ExpectUntouched();
}

TEST_F(BadInputTest, UnknownSequenceInEveryOperation) {
  for (const auto& [name, fill] : Operations()) {
    EXPECT_EQ(FailureOf([&fill = fill](v1::Operation& op) { fill(op, 99, 6); }),
              v1::ERROR_REASON_SEQUENCE_NOT_FOUND)
        << name;
  }
  ExpectUntouched();
}

TEST_F(BadInputTest, WrongStartLengthInEveryOperation) {
  for (const auto& [name, fill] : Operations()) {
    for (const uint32_t start_length : {0u, 5u, 7u, kHuge}) {
      EXPECT_EQ(
          FailureOf([&fill = fill, start_length](v1::Operation& op) { fill(op, 1, start_length); }),
          v1::ERROR_REASON_LENGTH_MISMATCH)
          << name << " from " << start_length;
    }
  }
  ExpectUntouched();
}

TEST_F(BadInputTest, HandlesOfForksThatAreTaken) {
  const auto fork_to = [this](const std::vector<uint64_t>& children) {
    return FailureOf([&](v1::Operation& op) {
      op.mutable_fork()->set_sequence(1);
      op.mutable_fork()->set_start_length(6);
      for (const uint64_t child : children) op.mutable_fork()->add_children(child);
    });
  };
  EXPECT_EQ(fork_to({1}), v1::ERROR_REASON_SEQUENCE_EXISTS);
  EXPECT_EQ(fork_to({50, 2}), v1::ERROR_REASON_SEQUENCE_EXISTS);
  EXPECT_EQ(fork_to({50, 50}), v1::ERROR_REASON_SEQUENCE_EXISTS);
  EXPECT_EQ(fork_to({}), v1::ERROR_REASON_INVALID_ARGUMENT);
  ExpectUntouched();
}

// An expired lease, and one that is good for another tenant, look the same.
class LeaseOfOthersTest : public ::testing::Test {
 protected:
  static constexpr char kAcme[] = "acme-0123456789ab";
  static constexpr char kOther[] = "other-0123456789ab";
  static constexpr char kAll[] = "all-0123456789abcd";

  grpc::Status Attach(const char* name, uint64_t incarnation, const char* token,
                      v1::AttachWorkerResponse* response) {
    v1::AttachWorkerRequest request;
    request.set_worker(name);
    request.set_incarnation(incarnation);
    request.set_model_fingerprint("m");
    request.set_map_memory(false);
    request.mutable_lease_duration()->CopyFrom(lease_);
    return server_.Call(server_.cache(), &v1::CacheService::Stub::AttachWorker, request, response,
                        token);
  }

  TempFolder tokens_;
  TempFolder memory_;
  google::protobuf::Duration lease_ = [] {
    google::protobuf::Duration duration;
    duration.set_seconds(60);
    return duration;
  }();
  TestServer server_{[this](ServerOptions& options) {
    options.pools = {SharedPool(memory_, 4)};
    options.token_file = tokens_.File("tokens");
    std::ofstream(options.token_file) << kAcme << " acme worker\n"
                                      << kOther << " other worker\n"
                                      << kAll << " * admin\n";
  }};
};

TEST_F(LeaseOfOthersTest, IsExpiredForAnotherTenantAndGoodForWhoActsForAll) {
  v1::AttachWorkerResponse attached;
  ASSERT_THAT(Attach("w", 1, kAcme, &attached), CallIsOk());
  for (const auto& status : CallsOf(server_, attached.lease_id(), attached.epoch(), kOther)) {
    EXPECT_THAT(status, IsRefused(grpc::FAILED_PRECONDITION, "LEASE_EXPIRED"));
  }
  for (const auto& status : CallsOf(server_, attached.lease_id(), attached.epoch(), kAll)) {
    EXPECT_THAT(status, CallIsOk());
  }
}

TEST_F(LeaseOfOthersTest, NameOfAWorkerIsItsTenants) {
  v1::AttachWorkerResponse first;
  ASSERT_THAT(Attach("w", 1, kAcme, &first), CallIsOk());
  // Neither its lease by an equal incarnation, nor its end by a higher one.
  for (const uint64_t incarnation : {0u, 1u, 2u}) {
    v1::AttachWorkerResponse stolen;
    EXPECT_THAT(Attach("w", incarnation, kOther, &stolen),
                IsRefused(grpc::PERMISSION_DENIED, "PERMISSION_DENIED"));
    EXPECT_EQ(stolen.lease_id(), "");
  }
  v1::AttachWorkerResponse again;
  ASSERT_THAT(Attach("w", 1, kAcme, &again), CallIsOk());
  EXPECT_TRUE(again.resumed());
  EXPECT_EQ(again.lease_id(), first.lease_id());
}

TEST_F(LeaseOfOthersTest, ALeaseOfWhoActsForAllIsNoTenants) {
  v1::AttachWorkerResponse attached;
  ASSERT_THAT(Attach("w", 1, kAll, &attached), CallIsOk());
  EXPECT_THAT(CallsOf(server_, attached.lease_id(), attached.epoch(), kAcme).front(),
              IsRefused(grpc::FAILED_PRECONDITION, "LEASE_EXPIRED"));
}

TEST_F(LeaseOfOthersTest, ExpiredOnesAreRefusedInEveryCall) {
  lease_.set_seconds(0);
  lease_.set_nanos(50'000'000);
  v1::AttachWorkerResponse attached;
  ASSERT_THAT(Attach("w", 1, kAcme, &attached), CallIsOk());
  v1::ListWorkersResponse workers;
  do {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    workers.Clear();
    ASSERT_THAT(server_.Call(server_.admin(), &v1::AdminService::Stub::ListWorkers,
                             v1::ListWorkersRequest(), &workers, kAll),
                CallIsOk());
  } while (workers.workers_size() > 0);
  for (const auto& status : CallsOf(server_, attached.lease_id(), attached.epoch(), kAcme)) {
    EXPECT_THAT(status, IsRefused(grpc::FAILED_PRECONDITION, "LEASE_EXPIRED"));
  }
}

}  // namespace
}  // namespace quire::testing
