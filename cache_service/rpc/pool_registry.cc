#include "cache_service/rpc/pool_registry.h"

#include <charconv>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_service/base/error.h"

namespace quire {
namespace {

constexpr char kSeparator = '-';

absl::Status UnknownLease() {
  return ToStatus(MakeError(Reason::kLeaseExpired, "unknown or expired lease; attach again"));
}

}  // namespace

PoolRegistry::PoolRegistry(std::vector<std::unique_ptr<Pool>> pools) : pools_(std::move(pools)) {}

absl::StatusOr<Pool*> PoolRegistry::Find(const std::string& name) const {
  if (name.empty()) {
    if (pools_.size() == 1) return pools_.front().get();
    return ToStatus(InvalidArgument("pool", "required where a server has several pools",
                                    {{"pools", pools_.size()}}));
  }
  for (const auto& pool : pools_) {
    if (pool->name() == name) return pool.get();
  }
  return ToStatus(
      MakeError(Reason::kPoolNotFound, absl::StrCat("no pool ", name), {{"pool", name}}));
}

std::string PoolRegistry::WireLease(const Pool& pool, const LeaseId& lease) const {
  size_t index = 0;
  while (pools_[index].get() != &pool) ++index;
  return absl::StrCat(index, "-", lease);
}

absl::StatusOr<LeasedPool> PoolRegistry::FindByLease(const std::string& wire_lease,
                                                     Epoch given) const {
  // Before anything else: after a restart nobody may have attached yet.
  if (Error error = CheckEpoch(epoch(), given); !error.ok()) return ToStatus(error);
  size_t index = 0;
  const char* end = wire_lease.data() + wire_lease.size();
  const auto [rest, error] = std::from_chars(wire_lease.data(), end, index);
  if (error != std::errc() || rest == end || *rest != kSeparator || index >= pools_.size()) {
    return UnknownLease();
  }
  Pool* pool = pools_[index].get();
  if (pool->engine() == nullptr) return UnknownLease();
  return LeasedPool{pool, pool->engine(), LeaseId(rest + 1, end)};
}

std::vector<PoolSnapshot> PoolRegistry::Snapshots() const {
  std::vector<PoolSnapshot> snapshots;
  for (const auto& pool : pools_) snapshots.push_back(pool->Snapshot());
  return snapshots;
}

uint64_t PoolRegistry::LiveSequences() const {
  uint64_t sequences = 0;
  for (const auto& pool : pools_) sequences += pool->LiveSequences();
  return sequences;
}

}  // namespace quire
