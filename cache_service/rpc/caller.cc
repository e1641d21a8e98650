#include "cache_service/rpc/caller.h"

#include "cache_service/base/error.h"

namespace quire {

absl::Status ResolveTenant(const Caller& caller, const std::string& requested,
                           std::string* tenant) {
  if (!caller.tenant.has_value()) {
    *tenant = requested;
    return absl::OkStatus();
  }
  if (!requested.empty() && requested != *caller.tenant) {
    return ToStatus(MakeError(Reason::kPermissionDenied, "the caller may not act for this tenant",
                              {{"field", "namespace.tenant"}}));
  }
  *tenant = *caller.tenant;
  return absl::OkStatus();
}

}  // namespace quire
