// What administrators see and do, as plain structs.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_ADMIN_CALLS_H_
#define QUIRE_CACHE_SERVICE_ENGINE_ADMIN_CALLS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache_service/base/clock.h"
#include "cache_service/base/error.h"
#include "cache_service/engine/types.h"

namespace quire {

struct WorkerView {
  std::string name;
  uint64_t incarnation = 0;
  Duration lease_remaining{};
  uint32_t sequences = 0;
  StepNumber last_step = 0;
  StepNumber applied_step = 0;
  StepNumber completed_step = 0;
  Duration completed_age{};
  uint64_t fenced_blocks = 0;
  bool map_memory = true;
  std::string model_fingerprint;
};

// Why blocks are not available, by worker incarnation.
struct UnavailableView {
  std::string worker;
  uint64_t incarnation = 0;
  uint64_t fenced = 0;
  uint64_t quarantined = 0;
  Duration quarantined_for{};
  uint64_t claimed = 0;
  uint64_t held = 0;
};

struct PinView {
  std::string pin_id;
  std::string owner;
  uint32_t blocks = 0;
  Duration remaining{};
};

struct PinResult {
  std::string pin_id;
  uint32_t pinned_tokens = 0;
};

struct AuditFinding {
  // Number of the broken invariant (invariants.h); 0: content.
  uint32_t rule = 0;
  std::optional<BlockId> block;
  // Worker and sequence, pin, or "tree".
  std::string owner;
  std::string message;
};

struct AuditReport {
  std::vector<AuditFinding> findings;
  uint64_t blocks_checked = 0;
  uint64_t content_checked = 0;
};

Error WorkerNotFound(std::string_view name);
Error PinNotFound(std::string_view pin_id);

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_ADMIN_CALLS_H_
