// A public trace of conversations, replayed on an engine: prompts that share prefixes, answers, and
// a few requests at a time.
#include <deque>
#include <fstream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "cache_service/base/clock.h"
#include "nlohmann/json.hpp"
#include "tests/bench/bench_worker.h"
#include "tests/bench/engine_workloads.h"
#include "tests/bench/measure.h"

ABSL_FLAG(std::string, traces, QUIRE_BENCH_TRACES, "Folder of the public request traces");

namespace quire::bench {
namespace {

constexpr uint32_t kTokensPerId = 512;
constexpr size_t kAtOnce = 8;
// 10,000 blocks of 512 tokens, the size that published hit rates are for.
constexpr uint32_t kBlocks = 10'000 * kTokensPerId / 16;

struct Request {
  std::vector<uint32_t> ids;
  uint32_t input = 0;
  uint32_t output = 0;
};

std::vector<Request> ReadTrace(const std::string& path, size_t most) {
  std::vector<Request> requests;
  std::ifstream file(path);
  for (std::string line; requests.size() < most && std::getline(file, line);) {
    const nlohmann::json row = nlohmann::json::parse(line);
    requests.push_back({row["hash_ids"].get<std::vector<uint32_t>>(),
                        row["input_length"].get<uint32_t>(), row["output_length"].get<uint32_t>()});
  }
  return requests;
}

std::vector<TokenId> PromptOf(const Request& request) {
  std::vector<TokenId> tokens;
  tokens.reserve(request.ids.size() * kTokensPerId);
  for (const uint32_t id : request.ids) {
    for (uint32_t t = 0; t < kTokensPerId; ++t) tokens.push_back(id * kTokensPerId + t);
  }
  tokens.resize(request.input);
  return tokens;
}

// Microseconds that the steps of one request take.
double Replay(BenchWorker& worker, SequenceHandle handle, const Request& request) {
  const std::vector<TokenId> prompt = PromptOf(request);
  const std::vector<Operation> begin = {BenchWorker::Begin(handle, prompt)};
  const std::vector<TokenId> answer(request.output, static_cast<TokenId>(handle));
  const SequenceHandle handles[] = {handle};
  const uint32_t lengths[] = {request.input};
  const uint32_t counts[] = {request.output};
  AdvanceOp advance;
  advance.sequences = handles;
  advance.start_lengths = lengths;
  advance.tokens = answer;
  advance.token_counts = counts;
  const std::vector<Operation> advances = {advance};
  return Microseconds([&] {
    worker.Step(begin);
    worker.Step(advances);
  });
}

}  // namespace

void BenchTrace(Report& report, bool small) {
  const std::string path =
      absl::GetFlag(FLAGS_traces) + "/mooncake_fast25_conversation_trace.jsonl";
  const std::vector<Request> requests = ReadTrace(path, small ? 50 : 20'000);
  if (requests.empty()) {
    std::printf("trace: skipped, there is no %s (see --traces)\n", path.c_str());
    return;
  }
  const SystemClock clock;
  EngineOptions options;
  options.block_count = kBlocks;
  options.memory = PoolMemoryKind::kWorker;
  options.max_sequence_tokens = 131072 + 4096;
  const auto engine = CacheEngine::Create(options, clock);
  if (!engine.ok()) std::abort();
  BenchWorker worker(**engine);
  std::vector<double> times;
  double total = 0;
  uint64_t tokens = 0;
  std::deque<SequenceHandle> live;
  for (size_t i = 0; i < requests.size(); ++i) {
    live.push_back(i + 1);
    times.push_back(Replay(worker, i + 1, requests[i]));
    total += times.back();
    tokens += requests[i].input + requests[i].output;
    if (live.size() <= kAtOnce) continue;
    const std::vector<Operation> finish = {BenchWorker::Finish(live.front())};
    total += Microseconds([&] { worker.Step(finish); });
    live.pop_front();
  }
  const EngineCounters counters = (*engine)->Stats().counters;
  const auto hit =
      static_cast<double>(counters.prefix_tokens_hit_whole + counters.prefix_tokens_hit_partial);
  report.Add({"trace/conversation/request/p50", Median(times), "us", {}});
  report.Add({"trace/conversation/request/p99", Quantile(times, 0.99), "us", {}});
  report.Add(
      {"trace/conversation/block", 1e3 * total * 16 / static_cast<double>(tokens), "ns/block", {}});
  report.Add({"trace/conversation/hit_rate",
              hit / static_cast<double>(counters.prefix_tokens_queried),
              "ratio",
              {}});
}

}  // namespace quire::bench
