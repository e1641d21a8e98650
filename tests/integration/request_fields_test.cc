// Every field of every request: a bad value is refused by its name with the limit, and nothing
// changes.
#include "tests/integration/request_fields.h"

#include <google/protobuf/text_format.h>

#include <functional>
#include <map>

#include "absl/strings/str_cat.h"
#include "tests/integration/bad_input.h"

namespace quire::testing {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::TextFormat;

// Reason and numbers, whether the call or an operation was refused.
struct Refusal {
  std::string reason{};
  std::map<std::string, std::string> numbers{};
};

Refusal RefusalIn(const grpc::Status& status) {
  const google::rpc::ErrorInfo info = ErrorInfoOf(status);
  return {info.reason(), {info.metadata().begin(), info.metadata().end()}};
}

Refusal RefusalIn(const v1::StepAnswer& answer) {
  if (answer.failures_size() != 1) return {};
  const v1::OperationError& error = answer.failures(0).error();
  Refusal refusal;
  // Without ERROR_REASON_.
  refusal.reason = v1::ErrorReason_Name(error.reason()).substr(13);
  for (const v1::ErrorNumber& number : error.numbers()) {
    refusal.numbers[number.name()] = number.value();
  }
  return refusal;
}

class RequestFieldsTest : public BadInputTest {
 protected:
  RequestFieldsTest() {
    v1::AttachWorkerRequest attach;
    attach.set_worker("w");
    attach.set_incarnation(1);
    attach.set_model_fingerprint("m");
    EXPECT_THAT(
        other_.Call(other_.cache(), &v1::CacheService::Stub::AttachWorker, attach, &pipelined_),
        CallIsOk());
    AddCalls();
  }

  std::string Lease(bool pipelined) const {
    const v1::AttachWorkerResponse& lease = pipelined ? pipelined_ : worker_.attached();
    return absl::StrCat("lease_id: '", lease.lease_id(), "' epoch: ", lease.epoch(), " ");
  }

  // The good request, with the change.
  Refusal Call(const BadField& row) {
    if (row.rpc == "Step") return Step(row);
    const std::string text =
        good_.at(row.rpc) + (needs_lease_.contains(row.rpc) ? Lease(row.pipelined) : "");
    return calls_.at(row.rpc)(row.pipelined ? other_ : server_, text, row.change);
  }

  Refusal Step(const BadField& row) {
    v1::StepRequest request;
    v1::StepResponse response;
    v1::StepBatch& batch = row.pipelined ? *request.mutable_step() : worker_.NewStep();
    if (row.pipelined) Merge(Lease(true) + "step: 1", batch);
    Merge(row.change, batch);
    const grpc::Status status =
        row.pipelined
            ? other_.Call(other_.cache(), &v1::CacheService::Stub::Step, request, &response)
            : worker_.Send(&response);
    return status.ok() ? RefusalIn(response.answer()) : RefusalIn(status);
  }

  static void Merge(const std::string& text, google::protobuf::Message& message) {
    // A later value of a field replaces the one before.
    EXPECT_TRUE(TextFormat::MergeFromString(text, &message)) << text;
  }

  template <typename Service, typename Request, typename Response>
  void Add(const std::string& rpc, const std::string& good,
           grpc::Status (Service::*method)(grpc::ClientContext*, const Request&, Response*)) {
    good_[rpc] = good;
    calls_[rpc] = [method](TestServer& server, const std::string& text, const std::string& change) {
      Request request;
      Merge(text, request);
      Merge(change, request);
      Response response;
      if constexpr (std::is_same_v<Service, v1::CacheService::Stub>) {
        return RefusalIn(server.Call(server.cache(), method, request, &response));
      } else {
        return RefusalIn(server.Call(server.admin(), method, request, &response));
      }
    };
    requests_[rpc] = Request::descriptor();
  }

  void AddCalls() {
    using Cache = v1::CacheService::Stub;
    using Admin = v1::AdminService::Stub;
    const std::string prefix = "prefix { tokens: [1, 2, 3, 4] } ";
    Add("AttachWorker", "worker: 'x' model_fingerprint: 'm' ", &Cache::AttachWorker);
    Add("RenewLease", "", &Cache::RenewLease);
    Add("DetachWorker", "", &Cache::DetachWorker);
    Add("GetBlockTable", "", &Cache::GetBlockTable);
    Add("PeekPrefix", "tokens: [1, 2, 3, 4] ", &Cache::PeekPrefix);
    Add("ListPools", "", &Admin::ListPools);
    Add("GetPool", "", &Admin::GetPool);
    Add("ListWorkers", "", &Admin::ListWorkers);
    Add("ListSequences", "", &Admin::ListSequences);
    Add("GetSequence", "worker: 'w' handle: 1 ", &Admin::GetSequence);
    Add("PinPrefix", prefix + "owner: 'o' duration { seconds: 1 } ", &Admin::PinPrefix);
    Add("UnpinPrefix", "pin_id: 'p' ", &Admin::UnpinPrefix);
    Add("ListPins", "", &Admin::ListPins);
    Add("EvictPrefix", prefix, &Admin::EvictPrefix);
    Add("FlushPool", "", &Admin::FlushPool);
    Add("AuditPool", "", &Admin::AuditPool);
    Add("EndWorker", "worker: 'w' ", &Admin::EndWorker);
    Add("Drain", "", &Admin::Drain);
    requests_["Step"] = v1::StepBatch::descriptor();
  }

  using TextCall =
      std::function<Refusal(TestServer&, const std::string& good, const std::string& change)>;
  const std::set<std::string> needs_lease_ = {"RenewLease", "DetachWorker", "GetBlockTable"};
  std::map<std::string, std::string> good_;
  std::map<std::string, TextCall> calls_;
  std::map<std::string, const Descriptor*> requests_;
  // Its worker reports its counters.
  TestServer other_;
  v1::AttachWorkerResponse pipelined_;
};

TEST_F(RequestFieldsTest, BadValuesAreRefusedByNameAndChangeNothing) {
  for (const BadField& row : BadFields()) {
    SCOPED_TRACE(absl::StrCat(row.rpc, ": ", row.change.substr(0, 200)));
    const Refusal refusal = Call(row);
    EXPECT_EQ(refusal.reason, row.reason);
    const auto field = refusal.numbers.find("field");
    if (row.reason == "INVALID_ARGUMENT") {
      EXPECT_EQ(field == refusal.numbers.end() ? "" : field->second, row.field);
    }
    // What exceeds a limit is named with what was given.
    if (refusal.numbers.contains("limit")) {
      EXPECT_TRUE(refusal.numbers.contains("field"));
      EXPECT_TRUE(refusal.numbers.contains("given"));
    }
    const size_t equals = row.number.find('=');
    if (equals != std::string::npos) {
      const auto number = refusal.numbers.find(row.number.substr(0, equals));
      EXPECT_EQ(number == refusal.numbers.end() ? "absent" : number->second,
                row.number.substr(equals + 1))
          << row.number;
    }
    ExpectUntouched();
    if (HasFailure()) break;
  }
}

// All fields below a message; those of messages of their own end in one.
void Walk(const Descriptor& message, const std::string& path, std::set<std::string>& leaves,
          std::set<std::string>& all) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    const std::string name = path + "." + field.name();
    all.insert(name);
    const Descriptor* inner = field.message_type();
    if (inner != nullptr && inner->full_name() != "google.protobuf.Duration") {
      Walk(*inner, name, leaves, all);
    } else {
      leaves.insert(name);
    }
  }
}

TEST_F(RequestFieldsTest, TheTableKnowsEveryFieldOfEveryRequest) {
  std::set<std::string> leaves;
  std::set<std::string> all;
  for (const auto& [rpc, request] : requests_) Walk(*request, rpc, leaves, all);
  std::set<std::string> known = FieldsOfAnyValue();
  for (const BadField& row : BadFields()) known.insert(row.rpc + "." + row.path);
  for (const std::string& leaf : leaves) EXPECT_TRUE(known.contains(leaf)) << leaf;
  for (const std::string& path : known) EXPECT_TRUE(all.contains(path)) << path;
}

TEST_F(RequestFieldsTest, TheTableKnowsEveryRpc) {
  std::set<std::string> rpcs = {"Step", "StreamSteps"};
  for (const auto& [rpc, request] : requests_) rpcs.insert(rpc);
  for (const Descriptor* any :
       {v1::StepRequest::descriptor(), v1::ListPoolsRequest::descriptor()}) {
    const auto& service = *any->file()->service(0);
    for (int i = 0; i < service.method_count(); ++i) {
      EXPECT_TRUE(rpcs.contains(service.method(i)->name())) << service.method(i)->name();
    }
  }
  // The stream carries the same steps.
  EXPECT_EQ(v1::StreamStepsRequest::descriptor()->FindFieldByName("step")->message_type(),
            v1::StepBatch::descriptor());
}

}  // namespace
}  // namespace quire::testing
