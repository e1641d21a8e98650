#include "tests/fuzz/engine_bytes.h"

#include "tests/support/choices.h"
#include "tests/support/model_run.h"

namespace quire::testing {

std::string RunEngineBytes(std::span<const uint8_t> bytes) {
  ByteChoices choices(bytes);
  ModelRunOptions options;
  options.groups = 1 + choices.Next(2);
  options.min_blocks = 8;
  options.max_blocks = 32;
  ModelRun run(options, choices);
  while (!choices.empty()) {
    const std::string difference = run.Act(choices);
    if (difference.empty()) continue;
    std::string text;
    for (const std::string& line : run.log()) text += line + "\n";
    return text + run.DescribeModel() + difference;
  }
  return "";
}

}  // namespace quire::testing
