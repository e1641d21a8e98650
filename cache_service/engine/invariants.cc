#include "cache_service/engine/invariants.h"

#include <utility>

namespace quire {
namespace {

constexpr size_t kMostFindings = 1000;

}  // namespace

void InvariantChecker::Report(uint32_t rule, std::optional<BlockId> block, std::string owner,
                              std::string message) {
  if (report_.findings.size() < kMostFindings) {
    report_.findings.push_back({rule, block, std::move(owner), std::move(message)});
  }
}

AuditReport InvariantChecker::Check() {
  uses_.resize(core_.pool_.size());
  CheckWorkers();
  for (const auto& [id, pin] : core_.pins_) {
    for (const BlockId block : pin.blocks) ++uses_[Index(block)].holds;
  }
  CheckTree();
  CheckBlocks();
  CheckOrders();
  CheckCounts();
  CheckClaims();
  if (core_.groups_.has_windows) CheckProtection();
  if (!core_.groups_.only_windows) CheckBlockers();
  CheckEvictable(kNoWorker);
  for (const auto& worker : core_.workers_) {
    // Who has nothing of its own may take what everybody may.
    if (worker == nullptr || core_.pool_.OwnEvictable(worker->slot) == 0) continue;
    CheckEvictable(worker->slot);
  }
  report_.blocks_checked = core_.pool_.size();
  return std::move(report_);
}

}  // namespace quire
