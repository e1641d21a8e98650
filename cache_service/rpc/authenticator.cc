#include "cache_service/rpc/authenticator.h"

#include <sstream>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_service/base/error.h"
#include "cache_service/base/small_file.h"

namespace quire {
namespace {

constexpr std::string_view kScheme = "Bearer ";
// Short tokens can be guessed.
constexpr size_t kMinTokenBytes = 16;

// Takes the same time wherever the first difference is.
bool EqualInConstantTime(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |=
        static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]));
  }
  return difference == 0;
}

absl::Status LineError(const std::string& path, int line, const char* problem) {
  return ToStatus(InvalidArgument("token_file", absl::StrCat(path, ":", line, ": ", problem),
                                  {{"path", path}, {"line", line}}));
}

absl::Status Unauthenticated(const char* problem) {
  return ToStatus(MakeError(Reason::kUnauthenticated, problem));
}

}  // namespace

Authenticator Authenticator::OpenToAll() {
  Authenticator open;
  open.open_to_all_ = true;
  return open;
}

absl::StatusOr<Authenticator> Authenticator::FromFile(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadSmallFile("token_file", path);
  if (!text.ok()) return text.status();
  std::istringstream file(*text);
  Authenticator authenticator;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string token, tenant, role, rest;
    if (!(words >> token)) continue;
    if (!(words >> tenant >> role) || (words >> rest)) {
      return LineError(path, number, "expected TOKEN TENANT ROLE");
    }
    if (token.size() < kMinTokenBytes) return LineError(path, number, "token under 16 bytes");
    if (role != "worker" && role != "admin") {
      return LineError(path, number, "role is neither worker nor admin");
    }
    Caller caller{.tenant = std::nullopt, .is_admin = role == "admin"};
    if (tenant != "*") caller.tenant = tenant;
    authenticator.entries_.push_back({token, std::move(caller)});
  }
  if (authenticator.entries_.empty()) return LineError(path, 0, "no tokens");
  return authenticator;
}

absl::StatusOr<Caller> Authenticator::Authenticate(const Metadata& metadata) const {
  if (open_to_all_) return Caller{.tenant = std::nullopt, .is_admin = true};
  const auto it = metadata.find("authorization");
  if (it == metadata.end()) return Unauthenticated("no authorization in the call's metadata");
  std::string_view given(it->second.data(), it->second.size());
  if (!given.starts_with(kScheme)) return Unauthenticated("authorization is not a bearer token");
  given.remove_prefix(kScheme.size());
  const Entry* found = nullptr;
  for (const Entry& entry : entries_) {
    if (EqualInConstantTime(entry.token, given)) found = &entry;
  }
  if (found == nullptr) return Unauthenticated("unknown token");
  return found->caller;
}

}  // namespace quire
