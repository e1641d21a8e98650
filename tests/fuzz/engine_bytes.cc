#include "tests/fuzz/engine_bytes.h"

namespace quire::testing {

ModelRunOptions PoolOf(Choices& choices) {
  ModelRunOptions options;
  options.groups = 1 + choices.Next(3);
  options.windows = choices.OneIn(2);
  options.watermark = choices.OneIn(4);
  options.min_blocks = 8;
  options.max_blocks = 32;
  return options;
}

std::string RunEngineBytes(std::span<const uint8_t> bytes) {
  ByteChoices choices(bytes);
  ModelRun run(PoolOf(choices), choices);
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
