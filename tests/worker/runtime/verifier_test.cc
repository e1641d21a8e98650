#include "worker/runtime/verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "worker/model/contiguous_kv.h"

namespace quire::runtime {
namespace {

using testing::HasSubstr;

class VerifierTest : public testing::Test {
 protected:
  VerifierTest() {
    config_.layers = 2;
    config_.vocabulary = 64;
    model::SeededWeights weights(3);
    model_ = *model::Transformer::Create(config_, weights);
  }

  // A result as a faultless worker would give it, generated token by token.
  RequestResult Generate(float temperature) {
    RequestResult result;
    result.request.id = 8;
    result.request.prompt = {1, 2, 3, 4, 5};
    result.request.new_tokens = 6;
    result.request.sampling = {temperature, 77};
    model::ContiguousKv kv(config_);
    std::vector<TokenId> next = result.request.prompt;
    Generated output;
    for (uint32_t i = 0; i < 6; ++i) {
      model::LaunchBatch batch;
      batch.Add(kv.length(), next.data(), static_cast<int32_t>(next.size()));
      batch.logit_rows = {static_cast<int32_t>(next.size()) - 1};
      std::vector<float> logits;
      EXPECT_TRUE(kv.Prepare(batch).ok());
      EXPECT_TRUE(model_->Forward(batch, kv, logits).ok());
      output.logits.insert(output.logits.end(), logits.begin(), logits.end());
      next = {Sample(logits, result.request.sampling, {0, 5 + i})};
      output.tokens.push_back(next[0]);
    }
    result.outputs = {output};
    return result;
  }

  VerifyReport Verify(const RequestResult& result) {
    Verifier verifier(*model_, VerifyTolerance(config_.kv_dtype));
    EXPECT_TRUE(verifier.Check(result).ok());
    return verifier.report();
  }

  model::ModelConfig config_;
  std::unique_ptr<model::Transformer> model_;
};

TEST_F(VerifierTest, FindsARightResultIdentical) {
  for (const float temperature : {0.0f, 0.7f}) {
    const VerifyReport report = Verify(Generate(temperature));
    EXPECT_TRUE(report.identical()) << report.Summary();
    EXPECT_EQ(report.tokens, 6u);
    EXPECT_EQ(report.near_ties, 0u);
    EXPECT_THAT(report.Summary(), HasSubstr("verification: identical"));
  }
}

TEST_F(VerifierTest, FindsOneWrongToken) {
  RequestResult result = Generate(0.7f);
  result.outputs[0].tokens[5] ^= 1;
  const VerifyReport report = Verify(result);
  EXPECT_FALSE(report.identical());
  EXPECT_EQ(report.different_tokens, 1u);
  EXPECT_THAT(report.Summary(), HasSubstr("DIFFERENT"));
  EXPECT_THAT(report.Summary(), HasSubstr("request 8"));
}

TEST_F(VerifierTest, FindsOneWrongLogit) {
  RequestResult result = Generate(0.0f);
  result.outputs[0].logits[70] += 0.01f;
  EXPECT_EQ(Verify(result).different_logits, 1u);
  result.outputs[0].logits[70] = NAN;
  EXPECT_EQ(Verify(result).different_logits, 1u);
}

TEST_F(VerifierTest, NothingVerifiedIsNotIdentical) {
  EXPECT_FALSE(VerifyReport().identical());
  EXPECT_THAT(VerifyReport().Summary(), HasSubstr("nothing to compare"));
}

TEST_F(VerifierTest, NeedsRecordedLogits) {
  RequestResult result = Generate(0.0f);
  result.outputs[0].logits.clear();
  Verifier verifier(*model_, 1.0f);
  EXPECT_EQ(verifier.Check(result).code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace quire::runtime
