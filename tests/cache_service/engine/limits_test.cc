// What exceeds a limit is named with what was given and what is allowed.
#include <string>
#include <vector>

#include "cache_service/engine/cache_engine.h"
#include "gtest/gtest.h"
#include "tests/support/fake_clock.h"

namespace quire {
namespace {

class LimitsTest : public testing::Test {
 protected:
  static EngineOptions Options() {
    EngineOptions options;
    options.block_count = 64;
    options.block_tokens = 4;
    options.max_sequence_tokens = 64;
    options.max_leases = 2;
    options.max_sequences_per_worker = 2;
    options.max_table_entries_per_worker = 5;
    options.max_pins = 0;
    return options;
  }

  absl::Status Attach(const std::string& worker) {
    const auto attached = engine_->Attach(
        {.worker = worker, .incarnation = 1, .model_fingerprint = "m", .lock_step = true});
    if (attached.ok()) lease_ = attached->lease;
    return attached.status();
  }

  // What the only operation of a step failed with.
  Error Do(const Operation& operation) {
    const std::vector<Operation> operations = {operation};
    const auto result =
        engine_->Step({.lease = lease_, .epoch = 1, .step = ++step_, .operations = operations});
    EXPECT_TRUE(result.ok()) << result.status();
    return (*result)->failures.empty() ? Error() : (*result)->failures[0].error;
  }

  BeginOp Begin(SequenceHandle sequence, size_t tokens) {
    BeginOp begin;
    begin.sequence = sequence;
    begin.tokens = std::span(tokens_).first(tokens);
    return begin;
  }

  static ForkOp Fork(SequenceHandle sequence, uint32_t length,
                     const std::vector<SequenceHandle>& children) {
    ForkOp fork;
    fork.sequence = sequence;
    fork.start_length = length;
    fork.children = children;
    return fork;
  }

  static void ExpectExceeds(const Error& error, const std::string& field, uint64_t given,
                            uint64_t limit) {
    EXPECT_EQ(error.reason, Reason::kLimitExceeded) << error.message;
    EXPECT_TRUE(error.message.starts_with(field + ": ")) << error.message;
    EXPECT_EQ(error.Detail("field"), field);
    EXPECT_EQ(error.Detail("given"), std::to_string(given));
    EXPECT_EQ(error.Detail("limit"), std::to_string(limit));
  }

  FakeClock clock_;
  std::unique_ptr<CacheEngine> engine_ = *CacheEngine::Create(Options(), clock_);
  const std::vector<TokenId> tokens_ = std::vector<TokenId>(64, 7);
  LeaseId lease_;
  StepNumber step_ = 0;
};

TEST_F(LimitsTest, Leases) {
  ASSERT_TRUE(Attach("a").ok());
  ASSERT_TRUE(Attach("b").ok());
  ExpectExceeds(FromStatus(Attach("c")), "leases", 3, 2);
}

TEST_F(LimitsTest, WorkersOfAPoolThatOneOfThemKeeps) {
  EngineOptions options = Options();
  options.memory = PoolMemoryKind::kWorker;
  engine_ = *CacheEngine::Create(options, clock_);
  ASSERT_TRUE(Attach("a").ok());
  ExpectExceeds(FromStatus(Attach("b")), "leases", 2, 1);
}

TEST_F(LimitsTest, Sequences) {
  ASSERT_TRUE(Attach("a").ok());
  ASSERT_TRUE(Do(Begin(1, 3)).ok());
  const std::vector<SequenceHandle> children = {2, 3};
  ExpectExceeds(Do(Fork(1, 3, children)), "sequences", 3, 2);
  ASSERT_TRUE(Do(Begin(2, 3)).ok());
  ExpectExceeds(Do(Begin(3, 3)), "sequences", 3, 2);
}

TEST_F(LimitsTest, TableEntries) {
  ASSERT_TRUE(Attach("a").ok());
  ExpectExceeds(Do(Begin(1, 24)), "table_entries", 6, 5);
  ASSERT_TRUE(Do(Begin(1, 16)).ok());
  const std::vector<SequenceHandle> children = {2};
  ExpectExceeds(Do(Fork(1, 16, children)), "table_entries", 8, 5);
  ExtendOp extend;
  extend.sequence = 1;
  extend.start_length = 16;
  extend.slots = 24;
  ExpectExceeds(Do(extend), "table_entries", 6, 5);
}

TEST_F(LimitsTest, Pins) {
  PrefixSelector prefix;
  prefix.tokens = std::span(tokens_).first(4);
  const auto pin = engine_->PinPrefix(prefix, "owner", std::chrono::seconds(1));
  ExpectExceeds(FromStatus(pin.status()), "pins", 1, 0);
}

}  // namespace
}  // namespace quire
