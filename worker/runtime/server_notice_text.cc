#include "worker/runtime/server_notice_text.h"

#include "absl/strings/str_format.h"
#include "cache_service/base/error.h"
#include "worker/client/types.h"

namespace quire::runtime {
namespace {

double Seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

std::string Describe(const absl::Status& status) {
  if (!client::HasReason(status)) return status.ToString();
  const Error error = FromStatus(status);
  return std::string(ReasonName(error.reason)) + ": " + error.message;
}

std::string ToLine(const client::ServerNotice& notice, const std::string& server) {
  using Kind = client::ServerNotice::Kind;
  const double waited = Seconds(notice.waited);
  const double limit = Seconds(notice.limit);
  switch (notice.kind) {
    case Kind::kUnreachable:
      return absl::StrFormat("waiting for the server at %s, %.0f s of at most %.4g s: %s", server,
                             waited, limit, Describe(notice.cause));
    case Kind::kDraining:
      return absl::StrFormat(
          "the server at %s drains: what runs goes on, what is new waits for its successor, %.0f s "
          "of at most %.4g s",
          server, waited, limit);
    case Kind::kAnswersAgain:
      return absl::StrFormat("the server at %s answers after %.1f s", server, waited);
    case Kind::kAttachedAgain:
      break;
  }
  return absl::StrFormat(
      "attached to %s again after %.1f s, unfinished requests are computed again (%s)", server,
      waited, Describe(notice.cause));
}

}  // namespace quire::runtime
