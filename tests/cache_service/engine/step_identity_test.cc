#include "cache_service/engine/step_identity.h"

#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace quire {
namespace {

std::vector<TokenId> Prompt(size_t length) {
  std::vector<TokenId> tokens(length);
  std::iota(tokens.begin(), tokens.end(), 1000u);
  return tokens;
}

uint64_t OfBegin(const std::vector<TokenId>& tokens) {
  BeginOp begin;
  begin.sequence = 1;
  begin.tokens = tokens;
  const std::vector<Operation> operations = {begin};
  StepParams params;
  params.operations = operations;
  return Fingerprint(params);
}

TEST(StepIdentityTest, TheSameTokensElsewhereAreTheSame) {
  for (const size_t length : {1u, 15u, 16u, 17u, 100u, 4096u}) {
    const std::vector<TokenId> first = Prompt(length);
    // Another address, and another alignment.
    std::vector<TokenId> shifted = {7};
    shifted.insert(shifted.end(), first.begin(), first.end());
    BeginOp begin;
    begin.sequence = 1;
    begin.tokens = std::span(shifted).subspan(1);
    const std::vector<Operation> operations = {begin};
    StepParams params;
    params.operations = operations;
    EXPECT_EQ(Fingerprint(params), OfBegin(first)) << length;
  }
}

TEST(StepIdentityTest, AnyOneTokenCounts) {
  std::vector<TokenId> tokens = Prompt(200);
  std::set<uint64_t> seen = {OfBegin(tokens)};
  for (TokenId& token : tokens) {
    for (const TokenId other : {token ^ 1u, token ^ 0x20000u, 0u}) {
      const TokenId before = std::exchange(token, other);
      EXPECT_TRUE(seen.insert(OfBegin(tokens)).second);
      token = before;
    }
  }
}

TEST(StepIdentityTest, OrderCounts) {
  std::vector<TokenId> tokens = Prompt(200);
  std::set<uint64_t> seen = {OfBegin(tokens)};
  for (size_t i = 0; i < tokens.size(); ++i) {
    for (size_t k = i + 1; k < tokens.size(); ++k) {
      std::swap(tokens[i], tokens[k]);
      EXPECT_TRUE(seen.insert(OfBegin(tokens)).second) << i << " " << k;
      std::swap(tokens[i], tokens[k]);
    }
  }
}

TEST(StepIdentityTest, LengthCountsEvenOfZeros) {
  std::set<uint64_t> seen;
  for (size_t length = 1; length < 300; ++length) {
    EXPECT_TRUE(seen.insert(OfBegin(std::vector<TokenId>(length, 0))).second) << length;
  }
}

TEST(StepIdentityTest, ColumnsOfAnAdvanceAreNotOne) {
  const std::vector<SequenceHandle> handles(64, 1);
  const std::vector<uint32_t> ones(64, 1);
  const std::vector<uint32_t> twos(64, 2);
  std::set<uint64_t> seen;
  for (const auto& [lengths, tokens] : {std::pair(ones, twos), std::pair(twos, ones)}) {
    AdvanceOp advance;
    advance.sequences = handles;
    advance.start_lengths = lengths;
    advance.tokens = tokens;
    const std::vector<Operation> operations = {advance};
    StepParams params;
    params.operations = operations;
    EXPECT_TRUE(seen.insert(Fingerprint(params)).second);
  }
}

}  // namespace
}  // namespace quire
