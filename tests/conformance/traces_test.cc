// Public request traces replayed through the engine. They are read from $QUIRE_TRACES or from
// ../shared/traces beside the source tree; without them the tests are skipped.
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/facade_driver.h"
#include "tests/support/scenario.h"

namespace quire::testing {
namespace {

std::filesystem::path TraceFolder() {
  const char* folder = std::getenv("QUIRE_TRACES");
  return folder != nullptr ? folder : QUIRE_SOURCE_DIR "/../shared/traces";
}

// The numbers of the JSON array named `field` in `line`.
std::vector<uint32_t> NumbersOf(const std::string& line, const std::string& field) {
  std::vector<uint32_t> numbers;
  size_t at = line.find('[', line.find("\"" + field + "\""));
  while (at != std::string::npos && line[at] != ']') {
    const size_t begin = line.find_first_of("0123456789]", at);
    if (line[begin] == ']') break;
    numbers.push_back(static_cast<uint32_t>(std::stoul(line.substr(begin, 12))));
    at = line.find_first_of(",]", begin);
  }
  return numbers;
}

std::vector<std::vector<uint32_t>> ReadHashIds(const std::filesystem::path& file) {
  std::vector<std::vector<uint32_t>> requests;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) requests.push_back(NumbersOf(line, "hash_ids"));
  return requests;
}

// One worker that replays requests one by one without tables of its own.
class Replay {
 public:
  explicit Replay(const EngineOptions& options) : driver_(options) {
    AttachParams params;
    params.worker = "replay";
    params.incarnation = 1;
    params.model_fingerprint = "model";
    lease_ = driver_.Attach(params)->lease;
  }

  // Begin, commit, finish; returns the answer of the begin.
  StepResult Run(std::span<const TokenId> tokens) {
    const auto length = static_cast<uint32_t>(tokens.size());
    BeginOp begin;
    begin.sequence = 1;
    begin.tokens = tokens;
    const std::vector<Operation> first = {begin};
    const StepResult answer = Step(first);
    EXPECT_TRUE(ErrorOf(answer).ok()) << ErrorOf(answer).message;
    const std::vector<Operation> last = {CommitOp{1, length, length}, FinishOp{1, false, {}}};
    EXPECT_TRUE(Step(last).failures.empty());
    return answer;
  }

  FacadeDriver& driver() { return driver_; }

 private:
  StepResult Step(std::span<const Operation> operations) {
    StepParams params;
    params.lease = lease_;
    params.epoch = driver_.options().epoch;
    params.step = ++step_;
    params.applied_step = params.completed_step = step_ - 1;
    params.operations = operations;
    return driver_.Step(params).value();
  }

  FacadeDriver driver_;
  LeaseId lease_;
  StepNumber step_ = 0;
};

constexpr uint32_t kTraceBlockTokens = 512;

// Hit blocks / requested blocks of a cache of `capacity` blocks.
double HitRate(const std::vector<std::vector<uint32_t>>& requests, uint32_t capacity) {
  size_t longest = 0;
  for (const auto& ids : requests) longest = std::max(longest, ids.size());
  EngineOptions options = Pool(kTraceBlockTokens, capacity + 1);
  options.max_sequence_tokens = static_cast<uint32_t>(longest + 1) * kTraceBlockTokens;
  Replay replay(options);
  uint64_t requested = 0;
  uint64_t hit = 0;
  TokenId unique = 0xF0000000;
  Tokens tokens;
  for (const std::vector<uint32_t>& ids : requests) {
    tokens.clear();
    for (const uint32_t id : ids) {
      for (uint32_t i = 0; i < kTraceBlockTokens; ++i) tokens.push_back(id * kTraceBlockTokens + i);
    }
    tokens.push_back(unique++);
    requested += ids.size();
    hit += replay.Run(tokens).begins.at(0).reused_tokens / kTraceBlockTokens;
  }
  EXPECT_TRUE(replay.driver().Audit(false).findings.empty());
  return static_cast<double>(hit) / static_cast<double>(requested);
}

struct TraceRate {
  const char* file;
  uint32_t capacity;
  double rate;
};

class Traces : public ::testing::TestWithParam<TraceRate> {};

TEST_P(Traces, S61_LruHitRateToFourDigits) {
  const std::filesystem::path file = TraceFolder() / GetParam().file;
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no trace at " << file;
  EXPECT_NEAR(HitRate(ReadHashIds(file), GetParam().capacity), GetParam().rate, 0.00005 + 1e-9);
}

constexpr char kConversation[] = "mooncake_fast25_conversation_trace.jsonl";
constexpr char kSynthetic[] = "mooncake_fast25_synthetic_trace.jsonl";

INSTANTIATE_TEST_SUITE_P(Conversation, Traces,
                         ::testing::Values(TraceRate{kConversation, 1'000, .0445},
                                           TraceRate{kConversation, 3'000, .0653},
                                           TraceRate{kConversation, 5'859, .1361},
                                           TraceRate{kConversation, 10'000, .2116},
                                           TraceRate{kConversation, 20'000, .2878},
                                           TraceRate{kConversation, 30'000, .3257},
                                           TraceRate{kConversation, 50'000, .3546},
                                           TraceRate{kConversation, 200'000, .3664}),
                         [](const auto& test) { return std::to_string(test.param.capacity); });

INSTANTIATE_TEST_SUITE_P(
    Synthetic, Traces,
    ::testing::Values(TraceRate{kSynthetic, 1'000, .0841}, TraceRate{kSynthetic, 3'000, .1906},
                      TraceRate{kSynthetic, 5'859, .3094}, TraceRate{kSynthetic, 10'000, .4239},
                      TraceRate{kSynthetic, 20'000, .5718}, TraceRate{kSynthetic, 30'000, .6242},
                      TraceRate{kSynthetic, 50'000, .6396}),
    [](const auto& test) { return std::to_string(test.param.capacity); });

// Context and generated tokens of each row.
std::vector<uint32_t> ReadLengths(const std::filesystem::path& file) {
  std::vector<uint32_t> lengths;
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    const size_t context = line.find(',') + 1;
    const size_t generated = line.find(',', context) + 1;
    lengths.push_back(static_cast<uint32_t>(std::stoul(line.substr(context)) +
                                            std::stoul(line.substr(generated))));
  }
  return lengths;
}

void ExpectWaste(const char* name, const char* percent) {
  const std::filesystem::path file = TraceFolder() / name;
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no trace at " << file;
  Replay replay(Pool(16, 4096));
  Tokens tokens;
  uint64_t slots = 0;
  uint64_t used = 0;
  for (const uint32_t length : ReadLengths(file)) {
    tokens.resize(length);
    for (uint32_t i = 0; i < length; ++i) tokens[i] = static_cast<uint32_t>(used) + i;
    slots += replay.Run(tokens).blocks.size() * 16;
    used += length;
  }
  const double waste = 100.0 * static_cast<double>(slots - used) / static_cast<double>(slots);
  char text[16];
  std::snprintf(text, sizeof(text), "%.2f", waste);
  EXPECT_STREQ(text, percent);
}

TEST(TraceLengths, S62_InternalWasteOfTheConversationTrace) {
  ExpectWaste("azure_llm_2023_conv.csv", "0.54");
}

TEST(TraceLengths, S62_InternalWasteOfTheCodeTrace) {
  ExpectWaste("azure_llm_2023_code.csv", "0.37");
}

}  // namespace
}  // namespace quire::testing
