// The prefix tree: following a chain, finding one child of many, adding and removing.
#include <benchmark/benchmark.h>

#include "cache_service/engine/prefix_tree.h"
#include "tests/bench/bench_tokens.h"

namespace quire::bench {
namespace {

struct Tree {
  explicit Tree(uint32_t blocks) : tree(blocks, kBlockTokens, 1, &journal) {
    root = tree.GetRoot("root");
    tree.UseRoot(root);
  }

  NodeId Add(NodeId parent, const TokenId* tokens) {
    const NodeId node = tree.AddChild(parent, {tokens, kBlockTokens, {}}, kNoWorker, 1);
    tree.SetBlock(node, 0, BlockId{node});
    return node;
  }

  Journal journal;
  PrefixTree tree;
  NodeId root = kNoNode;
};

void BM_FollowChain(benchmark::State& state) {
  const auto blocks = static_cast<size_t>(state.range(0));
  Tree t(static_cast<uint32_t>(blocks));
  const std::vector<TokenId> tokens = Tokens(1, blocks * kBlockTokens);
  NodeId node = t.root;
  for (size_t i = 0; i < blocks; ++i) node = t.Add(node, &tokens[i * kBlockTokens]);
  std::vector<NodeId> path(blocks);
  std::vector<BlockId> held(blocks);
  for (auto _ : state) {
    benchmark::DoNotOptimize(t.tree.FollowOnlyChildren(
        t.root, tokens.data(), 1, path, held, [&](NodeId at) { t.tree.PrefetchNear(at + 8); }));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

BENCHMARK(BM_FollowChain)->Arg(160)->Arg(2048)->Arg(65536);

void BM_FindAmongChildren(benchmark::State& state) {
  const auto count = static_cast<uint32_t>(state.range(0));
  Tree t(count);
  for (uint32_t i = 0; i < count; ++i) t.Add(t.root, Tokens(i + 1, kBlockTokens).data());
  uint32_t next = 0;
  for (auto _ : state) {
    next = (next + 7919) % count;
    const TokenId first = (next + 1) * 1'000'003u;
    TokenId tokens[kBlockTokens];
    for (uint32_t i = 0; i < kBlockTokens; ++i) tokens[i] = first + i;
    benchmark::DoNotOptimize(t.tree.FindChild(t.root, {tokens, kBlockTokens, {}}));
  }
}

BENCHMARK(BM_FindAmongChildren)->Arg(2)->Arg(1000)->Arg(100000);

// Prompts that begin with the same few tokens, as those of one template do.
void BM_FindAmongLikeChildren(benchmark::State& state) {
  const auto count = static_cast<uint32_t>(state.range(0));
  Tree t(count);
  TokenId tokens[kBlockTokens] = {};
  for (uint32_t i = 0; i < count; ++i) {
    tokens[5] = i * 1'000'003u;
    t.Add(t.root, tokens);
  }
  uint32_t next = 0;
  for (auto _ : state) {
    next = (next + 7919) % count;
    tokens[5] = next * 1'000'003u;
    benchmark::DoNotOptimize(t.tree.FindChild(t.root, {tokens, kBlockTokens, {}}));
  }
}

BENCHMARK(BM_FindAmongLikeChildren)->Arg(1000)->Arg(100000);

void BM_AddAndRemoveChild(benchmark::State& state) {
  const auto others = static_cast<uint32_t>(state.range(0));
  Tree t(others + 1);
  for (uint32_t i = 0; i < others; ++i) t.Add(t.root, Tokens(i + 1, kBlockTokens).data());
  const std::vector<TokenId> tokens = Tokens(others + 1, kBlockTokens);
  for (auto _ : state) t.tree.Remove(t.Add(t.root, tokens.data()));
}

BENCHMARK(BM_AddAndRemoveChild)->Arg(0)->Arg(1)->Arg(1000);

}  // namespace
}  // namespace quire::bench
