// What was generated can be read again and checked without its logits.
#include "worker/runtime/text_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temp_folder.h"
#include "worker/runtime/verifier.h"

namespace quire::runtime {
namespace {

using ::testing::SizeIs;

RequestResult Result(uint64_t id) {
  RequestResult result;
  result.request.id = id;
  result.request.prompt = {1, 2, 3};
  result.request.sampling = {0.7f, 99};
  result.outputs.push_back({.tokens = {4, 5}, .logits = {}});
  result.outputs.push_back({.tokens = {6}, .logits = {}});
  return result;
}

TEST(TextLogTest, ReadsWhatWasWrittenByAllLives) {
  const quire::TempFolder folder;
  const std::string path = folder.path() + "/texts";
  for (uint64_t life = 1; life <= 2; ++life) {
    auto log = TextLog::Open(path);
    ASSERT_TRUE(log.ok()) << log.status();
    ASSERT_TRUE((*log)->Write(Result(life)).ok());
  }
  std::ofstream(path, std::ios::app) << R"({"id": 3, "prom)";
  const auto results = ReadTexts(path);
  ASSERT_TRUE(results.ok());
  ASSERT_THAT(*results, SizeIs(2));
  const RequestResult& second = results->at(1);
  EXPECT_EQ(second.request.id, 2u);
  EXPECT_EQ(second.request.prompt, Result(2).request.prompt);
  EXPECT_EQ(second.request.sampling.seed, 99u);
  EXPECT_EQ(second.request.sampling.temperature, 0.7f);
  ASSERT_THAT(second.outputs, SizeIs(2));
  EXPECT_EQ(second.outputs[0].tokens, Result(2).outputs[0].tokens);
}

TEST(TextLogTest, WithoutLogitsOnlyTheTokensAreChecked) {
  model::ModelConfig config;
  config.layers = 1;
  model::SeededWeights weights(1);
  const auto model = *model::Transformer::Create(config, weights);
  RequestResult made_up = Result(1);
  made_up.request.sampling.temperature = 0;
  Verifier strict(*model, 1e-4f);
  EXPECT_FALSE(strict.Check(made_up).ok());
  Verifier verifier(*model, 1e-4f);
  verifier.AllowMissingLogits();
  ASSERT_TRUE(verifier.Check(made_up).ok());
  EXPECT_EQ(verifier.report().tokens, 3u);
  EXPECT_GT(verifier.report().different_tokens, 0u);
  EXPECT_EQ(verifier.report().different_logits, 0u);
}

}  // namespace
}  // namespace quire::runtime
