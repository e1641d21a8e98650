// Asking for tables costs no more than the answer may have.
#include <vector>

#include "cache_service/engine/cache_engine.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fake_clock.h"

namespace quire {
namespace {

TEST(BlockTablesTest, AreCountedBeforeTheyAreCopied) {
  FakeClock clock;
  EngineOptions options;
  options.block_count = 64;
  options.max_sequence_tokens = 1024;
  options.max_answer_entries = 20;
  const auto engine = *CacheEngine::Create(options, clock);
  const LeaseId lease =
      engine->Attach({.worker = "w", .incarnation = 1, .model_fingerprint = "m", .lock_step = true})
          ->lease;
  const std::vector<TokenId> tokens(10 * options.block_tokens, 7);
  BeginOp begin;
  begin.sequence = 5;
  begin.tokens = tokens;
  const std::vector<Operation> operations = {begin};
  ASSERT_TRUE(engine->Step({.lease = lease, .epoch = 1, .step = 1, .operations = operations}).ok());

  const std::vector<SequenceHandle> twice = {5, 5};
  const auto tables = engine->GetTables(lease, 1, twice);
  ASSERT_TRUE(tables.ok()) << tables.status();
  EXPECT_EQ(tables->size(), 2u);
  const std::vector<SequenceHandle> thrice = {5, 5, 5};
  const Error error = FromStatus(engine->GetTables(lease, 1, thrice).status());
  EXPECT_EQ(error.reason, Reason::kLimitExceeded);
  EXPECT_EQ(error, LimitExceeded("sequences", "their tables have too many entries", 30, 20));
}

}  // namespace
}  // namespace quire
