#include "worker/runtime/workload.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "worker/runtime/summary.h"

namespace quire::runtime {
namespace {

RequestResult Answer(const Request& request, std::vector<TokenId> tokens) {
  RequestResult result;
  result.request = request;
  result.outputs.emplace_back();
  result.outputs[0].tokens = std::move(tokens);
  return result;
}

TEST(ChatTest, ATurnRepeatsTheConversationAndTheAnswer) {
  WorkloadOptions options;
  options.users = 1;
  options.turns = 2;
  const auto chat = MakeChat(options);
  const auto first = chat->Next();
  ASSERT_TRUE(first.has_value());
  EXPECT_FALSE(chat->Next().has_value());
  chat->OnResult(Answer(*first, {7, 8, 9}));
  const auto second = chat->Next();
  ASSERT_TRUE(second.has_value());
  std::vector<TokenId> expected = first->prompt;
  expected.insert(expected.end(), {7, 8, 9});
  ASSERT_GT(second->prompt.size(), expected.size());
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), second->prompt.begin()));
  // After its turns the user begins another conversation.
  chat->OnResult(Answer(*second, {1}));
  const auto third = chat->Next();
  ASSERT_TRUE(third.has_value());
  EXPECT_LT(third->prompt.size(), second->prompt.size());
}

TEST(ChatTest, UsersShareAFewSystemPrompts) {
  WorkloadOptions options;
  options.users = 20;
  options.prompts = 2;
  const auto chat = MakeChat(options);
  std::vector<std::vector<TokenId>> systems;
  for (int i = 0; i < 20; ++i) {
    const auto request = chat->Next();
    ASSERT_TRUE(request.has_value());
    systems.emplace_back(request->prompt.begin(), request->prompt.begin() + options.prompt_tokens);
  }
  std::sort(systems.begin(), systems.end());
  systems.erase(std::unique(systems.begin(), systems.end()), systems.end());
  EXPECT_EQ(systems.size(), 2u);
}

TEST(ChatTest, NeverAsksMoreThanASequenceHolds) {
  WorkloadOptions options;
  options.users = 1;
  options.turns = 100;
  options.max_sequence_tokens = 200;
  const auto chat = MakeChat(options);
  for (int i = 0; i < 50; ++i) {
    const auto request = chat->Next();
    ASSERT_TRUE(request.has_value());
    EXPECT_LE(request->prompt.size() + request->new_tokens, 200u);
    chat->OnResult(Answer(*request, std::vector<TokenId>(request->new_tokens, 1)));
  }
}

TEST(ChatTest, AUserReadsBeforeTheNextTurn) {
  class ManualClock final : public Clock {
   public:
    TimePoint Now() const override { return now; }

    TimePoint now = TimePoint(std::chrono::seconds(5));
  } clock;

  WorkloadOptions options;
  options.users = 1;
  options.think = std::chrono::seconds(2);
  options.clock = &clock;
  const auto chat = MakeChat(options);
  const auto first = chat->Next();
  ASSERT_TRUE(first.has_value());
  chat->OnResult(Answer(*first, {1}));
  clock.now += std::chrono::seconds(1);
  EXPECT_FALSE(chat->Next().has_value());
  clock.now += std::chrono::seconds(1);
  EXPECT_TRUE(chat->Next().has_value());
}

TEST(WorkloadTest, IsTheSameForTheSameSeed) {
  WorkloadOptions options;
  for (const auto make : {MakeChat, MakeSamples, MakeBeam}) {
    const auto one = make(options), two = make(options);
    WorkloadOptions other = options;
    other.seed = 2;
    const auto three = make(other);
    const auto a = one->Next(), b = two->Next(), c = three->Next();
    EXPECT_EQ(a->prompt, b->prompt);
    EXPECT_NE(a->prompt, c->prompt);
  }
}

TEST(SummaryTest, JsonAndTextAgree) {
  Summary summary;
  summary.workload = "chat";
  summary.seconds = 2;
  summary.stats.requests = 3;
  summary.stats.prompt_tokens = 200;
  summary.stats.reused_tokens = 150;
  summary.stats.generated_tokens = 50;
  summary.stats.slots_at_end = 100;
  summary.stats.tokens_at_end = 90;
  using std::chrono::microseconds;
  summary.stats.blocked = {microseconds(50), microseconds(100), microseconds(200),
                           microseconds(400)};
  const auto json = nlohmann::json::parse(ToJson(summary));
  EXPECT_EQ(json["prefix_hit_rate"], 0.75);
  EXPECT_EQ(json["tokens_per_second"], 25);
  EXPECT_EQ(json["internal_waste"], 0.1);
  const nlohmann::json by_place = {{"sending", 1}, {"decoding", 2}, {"beginning", 4}, {"other", 8}};
  EXPECT_EQ(json["blocked_us_per_token"], 15);
  EXPECT_EQ(json["blocked_us_per_token_by_place"], by_place);
  EXPECT_FALSE(json.contains("verification"));
  EXPECT_NE(ToText(summary).find("75.0 %"), std::string::npos);
  EXPECT_NE(ToText(summary).find("1.0 sending, 2.0 decoding, 4.0 beginning, 8.0 other"),
            std::string::npos);
  summary.verification = VerifyReport{.tokens = 5};
  EXPECT_EQ(nlohmann::json::parse(ToJson(summary))["verification"], "identical");
  summary.verification->different_tokens = 1;
  EXPECT_EQ(nlohmann::json::parse(ToJson(summary))["verification"], "different");
}

}  // namespace
}  // namespace quire::runtime
