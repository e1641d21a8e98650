// Plain names of the client's boundary. No protobuf, no gRPC.
#ifndef QUIRE_WORKER_CLIENT_TYPES_H_
#define QUIRE_WORKER_CLIENT_TYPES_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cache_service/base/error.h"

namespace quire::client {

using TokenId = uint32_t;
// Chosen by the worker; never used twice within one attachment.
using SequenceHandle = uint64_t;
using StepNumber = uint64_t;

// Block ids are signed as in the kernels' tables; "no block" is -1.
using BlockIndex = int32_t;
inline constexpr BlockIndex kNoBlock = -1;

// Separates cached content; see quire.v1.Namespace.
struct Namespace {
  std::string adapter{};
  std::string salt{};
  std::string tenant{};
  std::string weights_version{};
};

// Priority of the blocks whose first token lies in [start, end); see quire.v1.RetentionRange.
struct RetentionRange {
  uint32_t start = 0;
  std::optional<uint32_t> end{};
  uint32_t priority = 35;
  std::optional<std::chrono::nanoseconds> duration{};
};

// Input that is not tokens behind [start, end): its 32-byte digest.
struct DigestRange {
  uint32_t start = 0;
  uint32_t end = 0;
  std::string digest{};
};

// Layers that share one attention window (0: full attention), in block order.
struct LayerGroup {
  uint32_t window_tokens = 0;
  std::vector<uint32_t> layers{};
};

// Element types of keys and values; numbers equal quire.v1.Dtype.
enum class Dtype : uint8_t { kFp32 = 1, kFp16 = 2, kBf16 = 3, kFp8E4m3 = 4, kInt8 = 5 };

// Shape of the cached keys and values.
struct ModelLayout {
  Dtype dtype = Dtype::kBf16;
  uint32_t kv_heads = 0;
  uint32_t head_dim = 0;
  // Window per model layer (0: full); the server plans the groups ...
  std::vector<uint32_t> layer_windows{};
  // ... unless they are given.
  std::vector<LayerGroup> groups{};
};

// True if the server gave a reason; otherwise the error comes from the transport or this library.
bool HasReason(const absl::Status& status);

// The sequences of this lease are gone. Except after STALE_INCARNATION, attach again.
bool EndsLease(const absl::Status& status);

}  // namespace quire::client

#endif  // QUIRE_WORKER_CLIENT_TYPES_H_
