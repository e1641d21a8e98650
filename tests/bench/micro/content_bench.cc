// Comparing tokens, telling a repeated step, naming a namespace.
#include <benchmark/benchmark.h>

#include "cache_service/engine/content.h"
#include "cache_service/engine/namespace_key.h"
#include "cache_service/engine/step_identity.h"
#include "tests/bench/bench_tokens.h"

namespace quire::bench {
namespace {

void BM_SameTokens(benchmark::State& state) {
  const auto count = static_cast<uint32_t>(state.range(0));
  const std::vector<TokenId> a = Tokens(1, count);
  const std::vector<TokenId> b = a;
  for (auto _ : state) benchmark::DoNotOptimize(SameTokens(a.data(), b.data(), count));
  state.SetBytesProcessed(state.iterations() * state.range(0) * 4);
}

BENCHMARK(BM_SameTokens)->Arg(16)->Arg(64)->Arg(256);

// They part in the last token.
void BM_CommonLength(benchmark::State& state) {
  const std::vector<TokenId> a = Tokens(1, kBlockTokens);
  std::vector<TokenId> b = a;
  b.back() ^= 1;
  const ContentView left{a.data(), kBlockTokens, {}};
  const ContentView right{b.data(), kBlockTokens, {}};
  for (auto _ : state) benchmark::DoNotOptimize(CommonLength(left, right));
}

BENCHMARK(BM_CommonLength);

void BM_StepIdentityOfBegin(benchmark::State& state) {
  const std::vector<TokenId> tokens = Tokens(1, static_cast<size_t>(state.range(0)));
  BeginOp begin;
  begin.sequence = 1;
  begin.tokens = tokens;
  const std::vector<Operation> operations = {begin};
  StepParams params;
  params.operations = operations;
  for (auto _ : state) benchmark::DoNotOptimize(Fingerprint(params));
  state.SetBytesProcessed(state.iterations() * state.range(0) * 4);
}

BENCHMARK(BM_StepIdentityOfBegin)->Arg(512)->Arg(8192)->Arg(32768);

void BM_NamespaceKey(benchmark::State& state) {
  const NamespaceParts parts{
      .adapter = "lora-7", .salt = "s", .tenant = "t", .weights_version = "1"};
  for (auto _ : state) benchmark::DoNotOptimize(NamespaceKey("fingerprint", "layout", parts));
}

BENCHMARK(BM_NamespaceKey);

}  // namespace
}  // namespace quire::bench
