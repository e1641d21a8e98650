// A line for people about the server.
#ifndef QUIRE_WORKER_RUNTIME_SERVER_NOTICE_TEXT_H_
#define QUIRE_WORKER_RUNTIME_SERVER_NOTICE_TEXT_H_

#include <string>

#include "absl/status/status.h"
#include "worker/client/server_wait.h"

namespace quire::runtime {

// The reason, where the server gave one, before the text.
std::string Describe(const absl::Status& status);

// Without line end. `server` is its address.
std::string ToLine(const client::ServerNotice& notice, const std::string& server);

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_SERVER_NOTICE_TEXT_H_
