#include "worker/runtime/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temp_folder.h"

namespace quire::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class TraceTest : public testing::Test {
 protected:
  absl::StatusOr<std::vector<TraceRequest>> Read(const std::string& text) {
    std::ofstream(path_) << text;
    return ReadTrace(path_);
  }

  const TempFolder folder_;
  const std::string path_ = folder_.File("trace");
};

TEST_F(TraceTest, ReadsMooncakeLines) {
  const auto trace =
      Read(R"({"timestamp": 0, "input_length": 513, "output_length": 7, "hash_ids": [0, 14]})"
           "\n\n"
           R"({"timestamp": 9, "input_length": 5, "output_length": 1, "hash_ids": [3]})"
           "\n");
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_THAT(*trace, SizeIs(2));
  EXPECT_EQ((*trace)[0].input_tokens, 513u);
  EXPECT_EQ((*trace)[0].output_tokens, 7u);
  EXPECT_THAT((*trace)[0].ids, ElementsAre(0, 14));
}

TEST_F(TraceTest, ReadsAzureCsv) {
  const auto trace = Read(
      "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
      "2023-11-16 18:15:46.6805900,374,44\r\n");
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_THAT(*trace, SizeIs(1));
  EXPECT_EQ((*trace)[0].input_tokens, 374u);
  EXPECT_EQ((*trace)[0].output_tokens, 44u);
  EXPECT_TRUE((*trace)[0].ids.empty());
}

TEST_F(TraceTest, NamesTheLineItCannotRead) {
  for (const char* line : {"{\"input_length\": 5", "{}", "[1]",
                           "{\"input_length\": 600, \"output_length\": 1, \"hash_ids\": [1]}",
                           "{\"input_length\": -5, \"output_length\": 1, \"hash_ids\": [1]}"}) {
    const auto trace = Read(
        std::string(R"({"input_length": 5, "output_length": 1, "hash_ids": [3]})") + "\n" + line);
    EXPECT_EQ(trace.status().code(), absl::StatusCode::kInvalidArgument) << line;
    EXPECT_THAT(std::string(trace.status().message()), HasSubstr("line 2"));
  }
  EXPECT_FALSE(Read("a,b,c\n1,2\n").ok());
  EXPECT_FALSE(Read("a,b,c\nx,99999999999,1\n").ok());
  EXPECT_FALSE(Read("").ok());
  EXPECT_EQ(ReadTrace("/nowhere/trace").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(TraceTest, EqualIdsGiveEqualPrefixesAtReducedLengths) {
  std::vector<TraceRequest> trace = {{1024, 64, {1, 2}}, {1536, 64, {1, 2, 3}}, {512, 1, {2}}};
  WorkloadOptions options;
  options.users = 3;
  const auto workload = MakeTrace(trace, options, 32);
  const auto a = workload->Next(), b = workload->Next(), c = workload->Next();
  ASSERT_TRUE(a && b && c);
  EXPECT_THAT(a->prompt, SizeIs(32));
  EXPECT_THAT(b->prompt, SizeIs(48));
  EXPECT_EQ(a->new_tokens, 2u);
  EXPECT_EQ(c->new_tokens, 1u);
  EXPECT_TRUE(std::equal(a->prompt.begin(), a->prompt.end(), b->prompt.begin()));
  EXPECT_TRUE(std::equal(c->prompt.begin(), c->prompt.end(), a->prompt.begin() + 16));
  EXPECT_NE(a->prompt[0], c->prompt[0]);
  EXPECT_TRUE(workload->exhausted());
}

TEST_F(TraceTest, KeepsNoMoreRequestsInFlightThanAsked) {
  WorkloadOptions options;
  options.users = 1;
  const auto workload = MakeTrace({{5, 1, {}}, {5, 1, {}}}, options, 1);
  const auto first = workload->Next();
  ASSERT_TRUE(first.has_value());
  EXPECT_FALSE(workload->Next().has_value());
  workload->OnResult({});
  const auto second = workload->Next();
  ASSERT_TRUE(second.has_value());
  EXPECT_NE(first->prompt, second->prompt);
}

}  // namespace
}  // namespace quire::runtime
