// Results of the benchmark program: a named value, and a goal where there is one.
#ifndef QUIRE_TESTS_BENCH_REPORT_H_
#define QUIRE_TESTS_BENCH_REPORT_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quire::bench {

struct Result {
  std::string name;
  double value = 0;
  // "us", "ns/block", "x", "B/block", ...
  std::string unit;
  // Largest value that reaches the goal (or smallest, with at_least).
  std::optional<double> goal;
  bool at_least = false;

  bool Reached() const { return !goal || (at_least ? value >= *goal : value <= *goal); }
};

class Report {
 public:
  void Add(Result result);

  // Prints a line for each result as it comes in.
  void PrintTo(std::FILE* stream) { stream_ = stream; }

  bool AllReached() const;
  // False if the file cannot be written.
  bool WriteJson(const std::string& path) const;

 private:
  std::vector<Result> results_;
  std::FILE* stream_ = nullptr;
};

}  // namespace quire::bench

#endif  // QUIRE_TESTS_BENCH_REPORT_H_
