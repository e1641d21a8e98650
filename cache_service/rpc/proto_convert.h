// Messages that several calls share, to and from plain structs. Pure functions.
#ifndef QUIRE_CACHE_SERVICE_RPC_PROTO_CONVERT_H_
#define QUIRE_CACHE_SERVICE_RPC_PROTO_CONVERT_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cache_service/base/clock.h"
#include "cache_service/engine/namespace_key.h"
#include "cache_service/engine/retention.h"
#include "cache_service/engine/types.h"
#include "cache_service/engine/worker_calls.h"
#include "cache_service/memory/pool_layout.h"
#include "cache_service/rpc/caller.h"
#include "quire/v1/types.pb.h"

namespace quire {

// Errors: INVALID_ARGUMENT for `field` unless seconds and nanoseconds are in their ranges and of
// one sign.
absl::Status CheckDuration(const google::protobuf::Duration& duration, std::string_view field);
// Of a duration that was checked. Saturates.
Duration FromProto(const google::protobuf::Duration& duration);
// Errors: those of CheckDuration, and INVALID_ARGUMENT for `field` if it is not positive.
absl::StatusOr<Duration> PositiveDuration(const google::protobuf::Duration& duration,
                                          std::string_view field);
void ToProto(Duration duration, google::protobuf::Duration* out);

// A name that a request must give, of at most 255 bytes. Errors: INVALID_ARGUMENT for `field`.
absl::Status CheckName(std::string_view field, const std::string& name);

// With the caller's tenant. Errors: PERMISSION_DENIED.
absl::StatusOr<NamespaceParts> FromProto(const v1::Namespace& proto, const Caller& caller);
void ToProto(const NamespaceParts& parts, v1::Namespace* out);

using RetentionRanges = google::protobuf::RepeatedPtrField<v1::RetentionRange>;
using DigestRanges = google::protobuf::RepeatedPtrField<v1::DigestRange>;

// Only what a struct cannot hold is refused here: a missing priority, a digest of another size.
// Names of fields in errors start with `field`. The engine judges the rest.
absl::StatusOr<std::vector<RetentionRange>> FromProto(const RetentionRanges& ranges,
                                                      const std::string& field);
absl::StatusOr<std::vector<DigestRange>> FromProto(const DigestRanges& ranges,
                                                   const std::string& field);

absl::StatusOr<GroupSpec> FromProto(const v1::LayerGroup& group, const std::string& field);
void ToProto(const GroupSpec& group, uint64_t padding_bytes, v1::LayerGroup* out);

// The groups' tables of one sequence, one run per group.
void ToProto(SequenceHandle sequence, std::span<const GroupTable> tables,
             google::protobuf::RepeatedPtrField<v1::TableRun>* out);
void AppendBlocks(std::span<const BlockId> blocks, v1::TableRun* out);

// Packed columns as they lie in the message.
inline std::span<const uint32_t> View(const google::protobuf::RepeatedField<uint32_t>& column) {
  return {column.data(), static_cast<size_t>(column.size())};
}

inline std::span<const uint64_t> View(const google::protobuf::RepeatedField<uint64_t>& column) {
  return {column.data(), static_cast<size_t>(column.size())};
}

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_RPC_PROTO_CONVERT_H_
