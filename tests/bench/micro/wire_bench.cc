// A step of many sequences from bytes to operations, and its answer back to bytes.
#include <benchmark/benchmark.h>

#include <string>

#include "cache_service/rpc/step_convert.h"
#include "tests/bench/bench_tokens.h"

namespace quire::bench {
namespace {

std::string AdvanceBytes(uint64_t sequences) {
  v1::StreamStepsRequest request;
  v1::AdvanceOperation& advance = *request.mutable_step()->add_operations()->mutable_advance();
  for (uint64_t i = 0; i < sequences; ++i) {
    advance.add_sequences(i + 1);
    advance.add_start_lengths(100);
    advance.add_tokens(7);
  }
  return request.SerializeAsString();
}

void DecodeAgainAndAgain(benchmark::State& state, const std::string& bytes) {
  v1::StreamStepsRequest request;
  StepDecoder decoder;
  const Caller caller;
  for (auto _ : state) {
    if (!request.ParseFromString(bytes) || !decoder.Decode(request.step(), caller, 4096).ok()) {
      state.SkipWithError("not a step");
    }
    benchmark::DoNotOptimize(decoder.operations().data());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes.size()));
}

void BM_DecodeAdvance(benchmark::State& state) {
  DecodeAgainAndAgain(state, AdvanceBytes(static_cast<uint64_t>(state.range(0))));
}

BENCHMARK(BM_DecodeAdvance)->Arg(64)->Arg(256)->Arg(1024);

void BM_DecodeBegin(benchmark::State& state) {
  v1::StreamStepsRequest request;
  v1::BeginOperation& begin = *request.mutable_step()->add_operations()->mutable_begin();
  begin.set_sequence(1);
  for (const TokenId token : Tokens(1, static_cast<size_t>(state.range(0)))) {
    begin.add_tokens(token);
  }
  DecodeAgainAndAgain(state, request.SerializeAsString());
}

BENCHMARK(BM_DecodeBegin)->Arg(2560)->Arg(32768);

void EncodeAgainAndAgain(benchmark::State& state, const StepResult& result) {
  v1::StreamStepsResponse response;
  std::string bytes;
  for (auto _ : state) {
    response.mutable_answer()->Clear();
    FillAnswer(result, response.mutable_answer());
    response.SerializeToString(&bytes);
    benchmark::DoNotOptimize(bytes.data());
  }
}

// `runs` tables grew by a block each.
void BM_EncodeAnswer(benchmark::State& state) {
  StepResult result;
  result.step = 1000;
  for (uint32_t i = 0; i < static_cast<uint32_t>(state.range(0)); ++i) {
    result.runs.push_back({i + 1, 0, 7, i, 1});
    result.blocks.push_back(BlockId{i});
  }
  EncodeAgainAndAgain(state, result);
}

BENCHMARK(BM_EncodeAnswer)->Arg(4)->Arg(16)->Arg(64);

// One table of a long prompt.
void BM_EncodeTable(benchmark::State& state) {
  StepResult result;
  const auto count = static_cast<uint32_t>(state.range(0));
  result.runs.push_back({1, 0, 0, 0, count});
  for (uint32_t i = 0; i < count; ++i) result.blocks.push_back(BlockId{i});
  EncodeAgainAndAgain(state, result);
}

BENCHMARK(BM_EncodeTable)->Arg(160)->Arg(2048);

}  // namespace
}  // namespace quire::bench
