#include "cache_service/rpc/listeners.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "cache_service/base/error.h"
#include "cache_service/base/small_file.h"

namespace quire {
namespace {

absl::Status BadFile(const char* field, const std::string& path, const char* problem) {
  return ToStatus(InvalidArgument(field, absl::StrCat(path, ": ", problem), {{"path", path}}));
}

// OpenSSL would ask on the terminal.
int NoPassword(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*user*/) { return -1; }

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;

Bio Reader(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), BIO_free);
}

// gRPC says of a bad pair only that it cannot listen.
absl::Status CheckPair(const std::string& certificate_file, const std::string& certificate,
                       const std::string& key_file, const std::string& key) {
  const std::unique_ptr<X509, decltype(&X509_free)> read_certificate(
      PEM_read_bio_X509(Reader(certificate).get(), nullptr, NoPassword, nullptr), X509_free);
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> read_key(
      PEM_read_bio_PrivateKey(Reader(key).get(), nullptr, NoPassword, nullptr), EVP_PKEY_free);
  const bool fits = read_certificate != nullptr && read_key != nullptr &&
                    X509_check_private_key(read_certificate.get(), read_key.get()) == 1;
  ERR_clear_error();
  if (fits) return absl::OkStatus();
  if (read_certificate == nullptr) {
    return BadFile("tls_certificate", certificate_file, "holds no PEM certificate");
  }
  if (read_key == nullptr) {
    return BadFile("tls_key", key_file, "holds no PEM private key without a password");
  }
  return BadFile("tls_key", key_file, "is not the key of tls_certificate");
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> TcpCredentials(
    const std::string& certificate_file, const std::string& key_file) {
  if (certificate_file.empty() && key_file.empty()) return grpc::InsecureServerCredentials();
  const auto certificate = ReadSmallFile("tls_certificate", certificate_file);
  if (!certificate.ok()) return certificate.status();
  const auto key = ReadSmallFile("tls_key", key_file);
  if (!key.ok()) return key.status();
  if (absl::Status status = CheckPair(certificate_file, *certificate, key_file, *key);
      !status.ok()) {
    return status;
  }
  grpc::SslServerCredentialsOptions options;
  options.pem_key_cert_pairs.push_back({*key, *certificate});
  return grpc::SslServerCredentials(options);
}

}  // namespace quire
