#include "tests/bench/report.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <utility>

#include "nlohmann/json.hpp"

namespace quire::bench {

void Report::Add(Result result) {
  if (stream_ != nullptr) {
    std::fprintf(stream_, "%-52s %12.3f %-10s", result.name.c_str(), result.value,
                 result.unit.c_str());
    if (result.goal) {
      std::fprintf(stream_, " goal %s %.3f  %s", result.at_least ? ">=" : "<=", *result.goal,
                   result.Reached() ? "reached" : "MISSED");
    }
    std::fprintf(stream_, "\n");
    std::fflush(stream_);
  }
  results_.push_back(std::move(result));
}

bool Report::AllReached() const {
  return std::all_of(results_.begin(), results_.end(),
                     [](const Result& result) { return result.Reached(); });
}

bool Report::WriteJson(const std::string& path) const {
  nlohmann::json all = nlohmann::json::array();
  for (const Result& result : results_) {
    nlohmann::json entry = {{"name", result.name}, {"value", result.value}, {"unit", result.unit}};
    if (result.goal) {
      entry["goal"] = *result.goal;
      entry["at_least"] = result.at_least;
      entry["reached"] = result.Reached();
    }
    all.push_back(std::move(entry));
  }
  std::ofstream file(path);
  file << all.dump(2) << "\n";
  return file.good();
}

}  // namespace quire::bench
