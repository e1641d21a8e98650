#include "tests/bench/engine_workloads.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/bench/bench_engine.h"
#include "tests/bench/bench_worker.h"
#include "tests/bench/measure.h"

namespace quire::bench {
namespace {

struct PromptTimes {
  std::vector<double> begin;
  std::vector<double> commit;
  std::vector<double> finish;
};

// One prompt through its whole life; `tokens` decides what it finds.
void RunPrompt(BenchWorker& worker, SequenceHandle handle, const std::vector<TokenId>& tokens,
               PromptTimes& times) {
  const std::vector<Operation> begin = {BenchWorker::Begin(handle, tokens)};
  times.begin.push_back(Microseconds([&] { worker.Step(begin); }));
  worker.Settle();
  const auto length = static_cast<uint32_t>(tokens.size());
  const std::vector<Operation> commit = {BenchWorker::Commit(handle, length)};
  times.commit.push_back(Microseconds([&] { worker.Step(commit); }));
  worker.Settle();
  const std::vector<Operation> finish = {BenchWorker::Finish(handle)};
  times.finish.push_back(Microseconds([&] { worker.Step(finish); }));
  worker.Settle();
}

void AddPrompt(Report& report, const std::string& name, const PromptTimes& times,
               std::optional<double> begin_goal, std::optional<double> finish_goal) {
  report.Add({absl::StrCat("engine/begin/", name), Median(times.begin), "us", begin_goal});
  report.Add({absl::StrCat("engine/commit/", name), Median(times.commit), "us", {}});
  report.Add({absl::StrCat("engine/finish/", name), Median(times.finish), "us", finish_goal});
}

}  // namespace

void BenchPrompts(Report& report, bool small) {
  const int repeats = small ? 3 : 60;
  for (const uint32_t length : {2560u, 8192u, 32768u, 131072u}) {
    if (small && length > 8192) continue;
    const std::string size = absl::StrCat(length / 1024.0, "k");
    const auto engine = MakeEngine(small ? 8192 : 262144);
    BenchWorker worker(*engine);
    PromptTimes cold;
    SequenceHandle handle = 1;
    for (int i = 0; i < repeats; ++i) {
      RunPrompt(worker, handle++, Tokens(static_cast<uint32_t>(i) + 10, length), cold);
    }
    AddPrompt(report, absl::StrCat(size, "/cold"), cold,
              length == 8192 ? std::optional<double>(40) : std::nullopt, std::nullopt);
    PromptTimes cached;
    const std::vector<TokenId> tokens = Tokens(1, length);
    RunPrompt(worker, handle++, tokens, cached);
    cached = {};
    for (int i = 0; i < repeats; ++i) RunPrompt(worker, handle++, tokens, cached);
    AddPrompt(report, absl::StrCat(size, "/cached"), cached,
              length == 32768 ? std::optional<double>(20) : std::nullopt,
              length == 32768 ? std::optional<double>(60) : std::nullopt);
    PromptTimes half;
    for (int i = 0; i < repeats; ++i) {
      std::vector<TokenId> mixed = Tokens(static_cast<uint32_t>(i) + 1000, length);
      std::copy_n(tokens.begin(), length / 2, mixed.begin());
      RunPrompt(worker, handle++, mixed, half);
    }
    AddPrompt(report, absl::StrCat(size, "/half"), half, std::nullopt, std::nullopt);
  }
  const auto engine = MakeEngine(8192);
  BenchWorker worker(*engine);
  const std::vector<TokenId> tokens = Tokens(1, small ? 4096 : 32768);
  const auto length = static_cast<uint32_t>(tokens.size());
  worker.Do(BenchWorker::Begin(1, tokens));
  worker.Do(BenchWorker::Commit(1, length));
  std::vector<double> forks;
  for (int i = 0; i < repeats; ++i) {
    const std::vector<SequenceHandle> children = {2, 3, 4, 5};
    const std::vector<Operation> fork = {ForkOp{1, length, children}};
    forks.push_back(Microseconds([&] { worker.Step(fork); }));
    for (const SequenceHandle child : children) worker.Do(BenchWorker::Finish(child));
    worker.Settle();
  }
  report.Add({absl::StrCat("engine/fork/", length / 1024, "k/4"), Median(forks), "us",
              small ? std::nullopt : std::optional<double>(5)});
}

// A sequence and its four forks get a token each: all but one need a copy of the shared last block.
void BenchDiverge(Report& report, bool small) {
  const auto engine = MakeEngine(8192);
  BenchWorker worker(*engine);
  const std::vector<TokenId> tokens = Tokens(1, small ? 4090 : 32760);
  const auto length = static_cast<uint32_t>(tokens.size());
  worker.Do(BenchWorker::Begin(1, tokens));
  worker.Do(BenchWorker::Commit(1, length));
  const std::vector<SequenceHandle> children = {2, 3, 4, 5};
  const std::vector<SequenceHandle> all = {1, 2, 3, 4, 5};
  const std::vector<uint32_t> lengths(all.size(), length);
  const std::vector<TokenId> next = {1, 2, 3, 4, 5};
  std::vector<double> times;
  for (int i = 0; i < (small ? 3 : 200); ++i) {
    worker.Do(ForkOp{1, length, children});
    AdvanceOp advance;
    advance.sequences = all;
    advance.start_lengths = lengths;
    advance.tokens = next;
    const std::vector<Operation> operations = {advance};
    times.push_back(Microseconds([&] { worker.Step(operations); }));
    worker.Do(TruncateOp{1, length + 1, length});
    for (const SequenceHandle child : children) worker.Do(BenchWorker::Finish(child));
    worker.Settle();
  }
  report.Add({absl::StrCat("engine/fork/", length / 1024, "k/4/diverge"), Median(times), "us", {}});
}

namespace {

// Families of prompts that share 2,048 tokens and have 512 of their own; the pool holds half of the
// working set, so each begin evicts. Returns the share of tokens that hit.
double RunFamilies(uint32_t families, PromptTimes& times) {
  const auto engine = MakeEngine(families * 160 / 2);
  BenchWorker worker(*engine);
  uint64_t state = 88172645463325252ull;
  const uint32_t prompts = std::max(families, 100u) * 4;
  for (uint32_t i = 0; i < prompts; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    std::vector<TokenId> tokens = Tokens(static_cast<uint32_t>(state % families), 2560);
    for (uint32_t t = 2048; t < 2560; ++t) tokens[t] = 0x80000000u + i * 512 + t;
    RunPrompt(worker, i + 1, tokens, times);
  }
  const EngineCounters counters = engine->Stats().counters;
  return static_cast<double>(counters.prefix_tokens_hit_whole) /
         static_cast<double>(counters.prefix_tokens_queried);
}

}  // namespace

void BenchFamily(Report& report, bool small) {
  // The same where all tables fit the cache of one processor: what main memory adds is the rest.
  PromptTimes in_cache;
  RunFamilies(small ? 20 : 50, in_cache);
  AddPrompt(report, "family_in_cache/2.5k/evicting", in_cache, std::nullopt, std::nullopt);
  if (small) return;
  PromptTimes times;
  report.Add({"engine/family/hit_rate", RunFamilies(1000, times), "ratio", {}});
  AddPrompt(report, "family/2.5k/evicting", times, 3, std::nullopt);
}

namespace {

// Fills a pool with idle blocks of 10-block prompts, then measures begins that evict.
double EvictionMicroseconds(uint32_t blocks, int repeats) {
  const auto engine = MakeEngine(blocks);
  BenchWorker worker(*engine);
  SequenceHandle handle = 1;
  const uint32_t chain = 10;
  for (uint32_t i = 0; i < blocks / chain + 1; ++i) {
    const std::vector<TokenId> tokens = Tokens(i + 10, chain * 16);
    worker.Do(BenchWorker::Begin(handle, tokens));
    worker.Do(BenchWorker::Commit(handle, chain * 16));
    worker.Do(BenchWorker::Finish(handle));
    ++handle;
  }
  std::vector<double> samples;
  const uint32_t taken = 64;
  for (int i = 0; i < repeats; ++i) {
    const std::vector<TokenId> tokens = Tokens(0x700000 + static_cast<uint32_t>(i), taken * 16);
    const std::vector<Operation> begin = {BenchWorker::Begin(handle, tokens)};
    samples.push_back(Microseconds([&] { worker.Step(begin); }) / taken);
    worker.Do(BenchWorker::Commit(handle, taken * 16));
    worker.Do(BenchWorker::Finish(handle));
    worker.Settle();
    ++handle;
  }
  return Median(samples);
}

}  // namespace

void BenchEviction(Report& report, bool small) {
  const int repeats = small ? 20 : 1000;
  const double few = EvictionMicroseconds(10'000, repeats);
  report.Add({"engine/evict/10k_idle", few, "us/block", 0.5});
  if (small) return;
  for (const uint32_t blocks : {100'000u, 1'000'000u, 4'000'000u}) {
    const double time = EvictionMicroseconds(blocks, repeats);
    report.Add({absl::StrCat("engine/evict/", blocks / 1000, "k_idle"), time, "us/block", 0.5});
    if (blocks == 4'000'000) {
      report.Add({"engine/evict/4000k_to_10k", time / few, "x", 1.5});
    }
  }
}

// All priorities and timers at once.
void BenchRetention(Report& report, bool small) {
  const auto engine = MakeEngine(small ? 2'000 : 100'000);
  BenchWorker worker(*engine);
  std::vector<double> samples;
  const uint32_t blocks = 16;
  const int repeats = small ? 200 : 20'000;
  for (int i = 0; i < repeats; ++i) {
    BeginOp begin;
    begin.sequence = static_cast<SequenceHandle>(i) + 1;
    const std::vector<TokenId> tokens = Tokens(static_cast<uint32_t>(i) + 10, blocks * 16);
    begin.tokens = tokens;
    for (uint32_t b = 0; b < blocks; b += 2) {
      RetentionRange range;
      range.start = b * 16;
      range.end = (b + 1) * 16;
      range.priority = (static_cast<uint32_t>(i) * 7 + b * 13) % 101;
      if (b % 4 == 0)
        range.duration = std::chrono::milliseconds(1 + (static_cast<uint32_t>(i) * 31 + b) % 500);
      begin.retention.push_back(range);
    }
    const std::vector<Operation> operations = {begin};
    const double time = Microseconds([&] { worker.Step(operations); });
    if (i > repeats / 2) samples.push_back(time / blocks);
    worker.Do(BenchWorker::Commit(begin.sequence, blocks * 16));
    worker.Do(BenchWorker::Finish(begin.sequence));
  }
  report.Add({"engine/evict/all_priorities_and_timers", Median(samples), "us/block", {}});
}

void BenchDecode(Report& report, bool small) {
  for (const uint32_t count : {64u, 256u, 1024u}) {
    const auto engine = MakeEngine(65536);
    BenchWorker worker(*engine);
    std::vector<SequenceHandle> handles;
    std::vector<uint32_t> lengths;
    for (uint32_t i = 0; i < count; ++i) {
      const std::vector<TokenId> tokens = Tokens(i + 10, 100 + i % 16);
      worker.Do(BenchWorker::Begin(i + 1, tokens));
      handles.push_back(i + 1);
      lengths.push_back(static_cast<uint32_t>(tokens.size()));
    }
    std::vector<double> samples;
    const std::vector<TokenId> tokens(count, 7);
    const int steps = small ? 32 : 400;
    for (int step = 0; step < steps; ++step) {
      const std::vector<Operation> operations = {BenchWorker::Advance(handles, lengths, tokens)};
      samples.push_back(Microseconds([&] { worker.Step(operations); }));
      for (uint32_t& length : lengths) ++length;
    }
    report.Add({absl::StrCat("engine/advance/", count), Median(samples), "us", {}});
  }
}

void BenchPoolSize(Report& report, bool small) {
  const uint32_t blocks = small ? 100'000 : 4'000'000;
  std::unique_ptr<CacheEngine> engine;
  const double start = Microseconds([&] { engine = MakeEngine(blocks); });
  report.Add({absl::StrCat("engine/start/", blocks / 1000, "k_blocks"), start / 1e6, "s", 1.0});
}

}  // namespace quire::bench
