// Parameters and results of attach, renewal, tables and peek.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_WORKER_CALLS_H_
#define QUIRE_CACHE_SERVICE_ENGINE_WORKER_CALLS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cache_service/base/clock.h"
#include "cache_service/base/error.h"
#include "cache_service/engine/namespace_key.h"
#include "cache_service/engine/types.h"

namespace quire {

struct AttachParams {
  std::string worker{};
  uint64_t incarnation = 0;
  std::string model_fingerprint{};
  uint32_t ranks = 1;
  std::optional<Duration> lease_duration{};
  bool map_memory = true;
  bool lock_step = false;
  // Of the caller's identity; absent: acts for all tenants. The lease is good for its tenant alone.
  std::optional<std::string> tenant{};
};

struct AttachResult {
  LeaseId lease{};
  // Small number of the lease within the engine, unique for the epoch; names the lease word and the
  // lock byte in the pool file.
  uint64_t lease_number = 0;
  Duration lease_duration{};
  StepNumber expected_step = 1;
  // An equal incarnation was attached already.
  bool resumed = false;
};

struct RenewParams {
  LeaseId lease{};
  Epoch epoch = 0;
  // Counters that are older than the last ones are no news.
  StepNumber applied_step = 0;
  StepNumber completed_step = 0;
  CallerTenant caller{};
};

struct RenewResult {
  Duration lease_duration{};
  StepNumber expected_step = 1;
  bool draining = false;
};

struct GroupTable {
  // kNoBlock: outside the window.
  std::vector<BlockId> blocks;

  friend bool operator==(const GroupTable&, const GroupTable&) = default;
};

struct SequenceView {
  std::string worker{};
  SequenceHandle handle = 0;
  uint32_t committed = 0;
  uint32_t length = 0;
  uint32_t reserved = 0;
  std::vector<GroupTable> groups;
  NamespaceParts namespace_parts{};
  uint64_t claimed_blocks = 0;
  bool waiting = false;

  friend bool operator==(const SequenceView&, const SequenceView&) = default;
};

// Names a prefix of cached content. An empty fingerprint means the only one in use.
struct PrefixSelector {
  std::string model_fingerprint{};
  NamespaceParts namespace_parts{};
  std::span<const TokenId> tokens{};
  std::vector<DigestRange> digests{};
};

// EPOCH_MISMATCH, or INVALID_ARGUMENT where none is given.
Error CheckEpoch(Epoch own, Epoch given);

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_WORKER_CALLS_H_
