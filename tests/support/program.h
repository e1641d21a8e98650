// Programs as processes of their own, ended by their process id.
#ifndef QUIRE_TESTS_SUPPORT_PROGRAM_H_
#define QUIRE_TESTS_SUPPORT_PROGRAM_H_

#include <chrono>
#include <string>
#include <vector>

#include "tests/support/temp_folder.h"

namespace quire {

// Output and exit code of a finished program; the error stream is part of the output. -1: a signal.
struct ProgramResult {
  int exit_code = -1;
  std::string output{};
};

// Contents of a file; empty if there is none.
std::string ReadFile(const std::string& path);

// Like kill, but never of a whole group.
void SignalProcess(int pid, int number);

// A program in the background. Killed at destruction. Not thread-safe.
class Program {
 public:
  explicit Program(const std::vector<std::string>& arguments);
  ~Program();
  Program(Program&& other) noexcept;
  Program& operator=(Program&&) = delete;

  // 0 once it has been waited for.
  int pid() const { return pid_; }

  void Signal(int number) const;
  // A process that it started, waited for at most ten seconds; fails the test and is 0 without one.
  int Child() const;
  // What it printed so far.
  std::string output() const;
  // Until the text was printed, at most a minute; false if the program ended or stayed silent.
  bool WaitFor(const std::string& text);
  // Whether it ended by itself or by a signal within the time.
  bool EndsWithin(std::chrono::milliseconds time);
  ProgramResult Wait();

 private:
  bool Ended();

  TempFolder folder_;
  int pid_ = 0;
  int exit_code_ = -1;
};

// Runs a program to its end.
ProgramResult RunProgram(const std::vector<std::string>& arguments);

}  // namespace quire

#endif  // QUIRE_TESTS_SUPPORT_PROGRAM_H_
