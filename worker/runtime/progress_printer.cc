#include "worker/runtime/progress_printer.h"

#include <unistd.h>

#include <iostream>

namespace quire::runtime {

ProgressPrinter::ProgressPrinter(bool enabled)
    : enabled_(enabled), terminal_(isatty(STDERR_FILENO) != 0) {}

bool ProgressPrinter::Due(double seconds) {
  if (!enabled_ || seconds - last_ < (terminal_ ? 0.2 : 1.0)) return false;
  last_ = seconds;
  return true;
}

void ProgressPrinter::Show(const std::string& line) const {
  if (terminal_) {
    std::cerr << "\r" << line << "\033[K" << std::flush;
  } else {
    std::cerr << line << "\n";
  }
}

void ProgressPrinter::Print(const std::string& line) const {
  std::cerr << (terminal_ ? "\r\033[K" : "") << line << std::endl;
}

void ProgressPrinter::Finish() const {
  if (enabled_ && terminal_) std::cerr << "\n";
}

}  // namespace quire::runtime
