#include "tests/support/spawn.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace quire {

int Spawn(std::vector<std::string> arguments, const Redirection& redirect) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  redirect(&actions);
  pid_t pid = 0;
  const int failed = posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  EXPECT_EQ(failed, 0) << argv[0];
  return failed == 0 ? pid : 0;
}

}  // namespace quire
