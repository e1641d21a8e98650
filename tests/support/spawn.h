// Starts a program; shared by those that read its output from a file and from a socket.
#ifndef QUIRE_TESTS_SUPPORT_SPAWN_H_
#define QUIRE_TESTS_SUPPORT_SPAWN_H_

#include <spawn.h>

#include <functional>
#include <string>
#include <vector>

namespace quire {

// Where the program's standard files go.
using Redirection = std::function<void(posix_spawn_file_actions_t*)>;

// Its process id; fails the test and is 0 if it cannot be started.
int Spawn(std::vector<std::string> arguments, const Redirection& redirect);

}  // namespace quire

#endif  // QUIRE_TESTS_SUPPORT_SPAWN_H_
