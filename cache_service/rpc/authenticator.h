// Identity of callers by bearer token.
#ifndef QUIRE_CACHE_SERVICE_RPC_AUTHENTICATOR_H_
#define QUIRE_CACHE_SERVICE_RPC_AUTHENTICATOR_H_

#include <grpcpp/support/string_ref.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cache_service/rpc/caller.h"

namespace quire {

// Immutable after construction, hence thread-safe.
class Authenticator {
 public:
  using Metadata = std::multimap<grpc::string_ref, grpc::string_ref>;

  // Everybody is an administrator of all tenants.
  static Authenticator OpenToAll();

  // One "TOKEN TENANT ROLE" per line, separated by blanks; '#' starts a comment. TENANT "*" means
  // all; ROLE is worker (CacheService) or admin (both services). Errors: INVALID_ARGUMENT for
  // token_file with the line.
  static absl::StatusOr<Authenticator> FromFile(const std::string& path);

  // Looks for "authorization: Bearer TOKEN". Errors: UNAUTHENTICATED.
  absl::StatusOr<Caller> Authenticate(const Metadata& metadata) const;

 private:
  struct Entry {
    std::string token;
    Caller caller;
  };

  bool open_to_all_ = false;
  std::vector<Entry> entries_;
};

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_RPC_AUTHENTICATOR_H_
