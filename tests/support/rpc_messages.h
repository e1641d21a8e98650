// The engine's plain structs to and from quire.v1 messages, written against the contract alone so
// that a mistake in the server's translation does not cancel out. For tests.
#ifndef QUIRE_TESTS_SUPPORT_RPC_MESSAGES_H_
#define QUIRE_TESTS_SUPPORT_RPC_MESSAGES_H_

#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "cache_service/engine/admin_calls.h"
#include "cache_service/engine/engine_stats.h"
#include "cache_service/engine/step.h"
#include "cache_service/engine/worker_calls.h"
#include "quire/v1/admin_service.pb.h"
#include "quire/v1/cache_service.pb.h"

namespace quire::testing {

Duration FromMessage(const google::protobuf::Duration& duration);
google::protobuf::Duration ToMessage(Duration duration);

v1::StepBatch ToMessage(const StepParams& params);
StepResult FromMessage(const v1::StepAnswer& answer);
Error FromMessage(const v1::OperationError& error);
// The one google.rpc.ErrorInfo of a refused call; a call without one becomes INVARIANT_BROKEN.
absl::Status FromCall(const grpc::Status& status);

v1::PrefixSelector ToMessage(const PrefixSelector& prefix);
SequenceView FromMessage(const v1::SequenceTable& table);
SequenceView FromMessage(const v1::Sequence& sequence);
WorkerView FromMessage(const v1::Worker& worker);
EngineStats FromMessage(const v1::Pool& pool);
AuditReport FromMessage(const v1::AuditPoolResponse& report);

}  // namespace quire::testing

#endif  // QUIRE_TESTS_SUPPORT_RPC_MESSAGES_H_
