#include "cache_service/rpc/listeners.h"

#include <fstream>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cache_service/base/error.h"

namespace quire {
namespace {

absl::StatusOr<std::string> ReadFile(const char* field, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (file && !text.str().empty()) return text.str();
  return ToStatus(
      InvalidArgument(field, absl::StrCat(path, ": cannot be read or empty"), {{"path", path}}));
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> TcpCredentials(
    const std::string& certificate_file, const std::string& key_file) {
  if (certificate_file.empty() && key_file.empty()) return grpc::InsecureServerCredentials();
  const auto certificate = ReadFile("tls_certificate", certificate_file);
  if (!certificate.ok()) return certificate.status();
  const auto key = ReadFile("tls_key", key_file);
  if (!key.ok()) return key.status();
  grpc::SslServerCredentialsOptions options;
  options.pem_key_cert_pairs.push_back({*key, *certificate});
  return grpc::SslServerCredentials(options);
}

absl::Status CheckTcpAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  int port = -1;
  if (colon != std::string::npos && colon > 0 &&
      absl::SimpleAtoi(address.substr(colon + 1), &port) && port >= 0 && port <= 65535) {
    return absl::OkStatus();
  }
  return ToStatus(InvalidArgument("tcp_address", absl::StrCat(address, ": not HOST:PORT"),
                                  {{"address", address}}));
}

}  // namespace quire
