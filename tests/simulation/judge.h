// Keeps the first violation of a seed: what was promised and what was seen. Not thread-safe.
#ifndef QUIRE_TESTS_SIMULATION_JUDGE_H_
#define QUIRE_TESTS_SIMULATION_JUDGE_H_

#include <cstdint>
#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"

namespace quire::simulation {

// Simulated time in milliseconds since the start of the seed.
using Tick = uint64_t;

class Judge {
 public:
  // With `trace`, every event goes to standard error.
  explicit Judge(bool trace) : trace_(trace) {}

  void SetNow(Tick now) { now_ = now; }

  Tick now() const { return now_; }

  bool ok() const { return violation_.empty(); }

  const std::string& violation() const { return violation_; }

  bool traces() const { return trace_; }

  template <typename... Parts>
  void Violate(const Parts&... parts) {
    if (ok()) violation_ = absl::StrCat("at ", now_, " ms: ", parts...);
    Trace("VIOLATION ", parts...);
  }

  template <typename... Parts>
  void Trace(const Parts&... parts) const {
    if (!trace_) return;
    std::fprintf(stderr, "%6llu %s\n", static_cast<unsigned long long>(now_),
                 absl::StrCat(parts...).c_str());
  }

 private:
  const bool trace_;
  Tick now_ = 0;
  std::string violation_;
};

}  // namespace quire::simulation

#endif  // QUIRE_TESTS_SIMULATION_JUDGE_H_
