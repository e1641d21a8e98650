// One life of a worker at a server: lease, pool and memory.
#ifndef QUIRE_WORKER_CLIENT_ATTACHMENT_H_
#define QUIRE_WORKER_CLIENT_ATTACHMENT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cache_service/base/clock.h"
#include "worker/client/client_options.h"
#include "worker/client/pool_mapping.h"
#include "worker/client/server_wait.h"
#include "worker/client/types.h"

namespace quire::client {

class Connection;

// What the server said at attach.
struct PoolInfo {
  std::string pool{};
  std::string lease_id{};
  uint64_t epoch = 0;
  uint32_t block_tokens = 0;
  uint32_t block_count = 0;
  uint64_t block_bytes = 0;
  std::vector<LayerGroup> groups{};
  Duration lease_duration{};
  uint32_t max_steps_in_flight = 1;
  uint32_t max_sequence_tokens = 0;
  uint32_t max_operations_per_step = 0;
  StepNumber expected_step = 1;
  // One per rank; each rank's process maps its own.
  std::vector<RegionGrant> regions{};
  // An equal incarnation was attached already; its sequences are still there.
  bool resumed = false;
};

struct Attachment {
  PoolInfo info{};
  // Null if the memory was declined or belongs to the worker.
  std::unique_ptr<PoolMapping> mapping{};
  // When the attach that succeeded was sent.
  TimePoint attached_at{};
};

// Attaches under `incarnation` and maps the region of options.rank. Calls that fail in transport or
// meet a server that drains are repeated, which is safe for one incarnation, as long as `wait` has
// patience. A layout that is not the worker's own is LAYOUT_MISMATCH.
absl::StatusOr<Attachment> AttachWorker(Connection& connection, const ClientOptions& options,
                                        uint64_t incarnation, const Clock& clock, ServerWait& wait);

}  // namespace quire::client

#endif  // QUIRE_WORKER_CLIENT_ATTACHMENT_H_
