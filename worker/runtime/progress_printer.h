// A line about what goes on, for people.
#ifndef QUIRE_WORKER_RUNTIME_PROGRESS_PRINTER_H_
#define QUIRE_WORKER_RUNTIME_PROGRESS_PRINTER_H_

#include <string>

namespace quire::runtime {

// On a terminal the line overwrites itself five times a second; elsewhere it is a line a second.
// Writes to the standard error, so that the summary stays alone on the standard output.
class ProgressPrinter {
 public:
  explicit ProgressPrinter(bool enabled);

  bool Due(double seconds);
  void Show(const std::string& line) const;
  // A line of its own, whether enabled or not.
  void Print(const std::string& line) const;
  // Leaves the line standing.
  void Finish() const;

 private:
  const bool enabled_;
  const bool terminal_;
  double last_ = 0;
};

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_PROGRESS_PRINTER_H_
