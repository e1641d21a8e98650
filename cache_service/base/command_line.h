// Command lines of programs whose options are absl flags.
//
// absl::ParseCommandLine ends the process with status 1 at the first mistake; here a mistake is a
// status, so that a program can say what it wants and keep its exit codes.
#ifndef QUIRE_CACHE_SERVICE_BASE_COMMAND_LINE_H_
#define QUIRE_CACHE_SERVICE_BASE_COMMAND_LINE_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace quire {

// Whether one of the arguments is that flag without a value, with one or two dashes.
bool HasWord(int argc, char** argv, std::string_view flag);

// Sets flags from "--flag=value", "--flag value", "--flag" and "--noflag" (the last two for bool);
// one dash works as well, "--" ends them. Returns the other words. Errors: INVALID_ARGUMENT naming
// the flag.
absl::StatusOr<std::vector<std::string>> SetFlags(int argc, char** argv);

// Sets one flag from text, which is never empty: whoever writes "--pool=$POOL" does not mean the
// default. Errors: INVALID_ARGUMENT naming it as `shown`.
absl::Status SetFlag(const std::string& flag, const std::string& text, std::string_view shown);

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_BASE_COMMAND_LINE_H_
