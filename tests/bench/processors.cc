#include "tests/bench/processors.h"

#include <filesystem>
#include <string>
#include <system_error>

namespace quire::bench {
namespace {

cpu_set_t Only(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(processor), &set);
  return set;
}

// Its threads so far; later ones are started by these.
void Keep(pid_t process, const cpu_set_t& set) {
  const std::string tasks = "/proc/" + std::to_string(process) + "/task";
  std::error_code gone;
  for (const auto& task : std::filesystem::directory_iterator(tasks, gone)) {
    sched_setaffinity(std::stoi(task.path().filename().string()), sizeof(set), &set);
  }
}

}  // namespace

Processors::Processors(std::initializer_list<pid_t> apart) {
  sched_getaffinity(0, sizeof(before_), &before_);
  if (CPU_COUNT(&before_) < 2) return;
  int first = 0;
  while (!CPU_ISSET(static_cast<size_t>(first), &before_)) ++first;
  int second = first + 1;
  while (!CPU_ISSET(static_cast<size_t>(second), &before_)) ++second;
  const cpu_set_t own = Only(first);
  sched_setaffinity(0, sizeof(own), &own);
  for (const pid_t process : apart) Keep(process, Only(second));
}

Processors::~Processors() { sched_setaffinity(0, sizeof(before_), &before_); }

}  // namespace quire::bench
