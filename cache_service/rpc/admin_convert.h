// What administrators see, as messages. Pure functions but for FillPool, which asks the pool.
#ifndef QUIRE_CACHE_SERVICE_RPC_ADMIN_CONVERT_H_
#define QUIRE_CACHE_SERVICE_RPC_ADMIN_CONVERT_H_

#include <string>

#include "absl/status/statusor.h"
#include "cache_service/engine/admin_calls.h"
#include "cache_service/rpc/caller.h"
#include "cache_service/rpc/pool.h"
#include "quire/v1/admin_service.pb.h"

namespace quire {

void FillPool(const Pool& pool, v1::Pool* out);
void FillWorker(const WorkerView& worker, const std::string& pool, v1::Worker* out);
void FillSequence(const SequenceView& sequence, v1::Sequence* out);
void FillPin(const PinView& pin, v1::Pin* out);
void FillAudit(const AuditReport& report, v1::AuditPoolResponse* out);

// The tokens stay in the message. Errors: INVALID_ARGUMENT, PERMISSION_DENIED.
absl::StatusOr<PrefixSelector> FromProto(const v1::PrefixSelector& prefix, const Caller& caller);
// What the engine says of a prefix, with the field's whole name: "tokens" is "prefix.tokens".
absl::Status OfPrefix(const absl::Status& status);

// Order of sequences: worker, then handle.
std::string SequenceKey(const std::string& worker, SequenceHandle handle);

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_RPC_ADMIN_CONVERT_H_
