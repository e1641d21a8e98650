#include "tests/kernels/bench/setup.h"

#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "kernels/dtype.h"
#include "tests/kernels/bench/first_version.h"
#include "tests/kernels/bench/machine_limits.h"

namespace quire::kernels::bench {

using testing::Layout;
using testing::Random;
using testing::ShuffledIds;

namespace {

// So that reads are not left out.
std::atomic<float> sink;

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

double Time(const std::function<void()>& body) {
  const double start = CpuSeconds();
  body();
  return CpuSeconds() - start;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Peaks MeasurePeaks(const KvPoolView& pool, int threads) {
  constexpr int64_t kRounds = 4000000;
  const int64_t bytes = std::min<int64_t>(pool.bytes, int64_t{256} << 20) / threads / 4096 * 4096;
  const auto on_each = [&](const std::function<void(int)>& body) {
    return Time([&] {
      std::vector<std::jthread> others;
      for (int i = 1; i < threads; ++i) others.emplace_back([&body, i] { body(i); });
      body(0);
    });
  };
  const double read = on_each([&](int i) { sink = ReadStream(pool.base + i * bytes, bytes); });
  const double fma = on_each([&](int) { sink = MultiplyAdd(kRounds); });
  return {1e-9 * static_cast<double>(bytes * threads) / read,
          1e-9 * static_cast<double>(kRounds * FmaPerRound() * threads) / fma};
}

void Check(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s: %s\n", status.argument().c_str(), status.message().c_str());
  std::exit(1);
}

Setup::Setup(const LayoutParams& params, int64_t pool_mib)
    : pool_(Layout(params), (pool_mib << 20) / Layout(params).block_bytes, false) {
  madvise(pool_.view().base, static_cast<size_t>(pool_.view().bytes), MADV_HUGEPAGE);
  Random random(1);
  pool_.FillBlock(0, random);
  // Copies of one block: which values does not matter, their distribution does.
  const PagedKvLayout& l = pool_.layout();
  for (int64_t b = 1; b < pool_.view().num_blocks; ++b) {
    std::memcpy(pool_.view().base + b * l.block_bytes, pool_.view().base,
                static_cast<size_t>(l.content_bytes()));
  }
  ids_ = ShuffledIds(pool_.view().num_blocks, random);
}

void Setup::SetBatch(int64_t rows, int32_t kv, int32_t q, int32_t q_heads, DType dtype) {
  const PagedKvLayout& l = pool_.layout();
  table_.columns = (kv + l.block_tokens() - 1) / l.block_tokens();
  table_.row_stride = table_.columns;
  table_.rows = std::min(rows, pool_.view().num_blocks / table_.columns);
  lens_.assign(static_cast<size_t>(table_.rows), kv);
  table_.ids = ids_.data();
  table_.lens = lens_.data();
  cu_.clear();
  for (int32_t i = 0; i <= table_.rows; ++i) cu_.push_back(i * q);
  params_ = {};
  params_.q_rows = table_.rows * q;
  params_.q_heads = q_heads;
  params_.cu_q_lens = cu_.data();
  const int64_t row = int64_t{q_heads} * l.head_dim;
  q_.resize(static_cast<size_t>(params_.q_rows * row) * 4);
  out_.resize(q_.size());
  Random random(2);
  for (int64_t i = 0; i < params_.q_rows * row; ++i) {
    StoreElement(dtype, q_.data(), i, random.Normal());
  }
  params_.q = q_.data();
  params_.out = out_.data();
  params_.q_dtype = params_.out_dtype = dtype;
  params_.q_row_stride = params_.out_row_stride = row;
  params_.q_head_stride = params_.out_head_stride = l.head_dim;
  params_.scale = 1.0f / std::sqrt(static_cast<float>(l.head_dim));
  params_.k_scale = params_.v_scale = scales_.data();
}

void Setup::Plan(Backend& backend) {
  Result<AttentionPlan> plan = backend.Plan(pool_.view(), table_, params_, {});
  Check(plan.status());
  plan_ = std::move(*plan);
  workspace_.resize(static_cast<size_t>(plan_.workspace_bytes));
}

void Setup::Attend(Backend& backend) {
  params_.layer = (params_.layer + 1) % pool_.layout().layers;
  Check(backend.DecodeAttention(pool_.view(), table_, params_, plan_, workspace_));
}

void Setup::AttendFirstVersion() { FirstVersionAttention(pool_.view(), table_, params_); }

int64_t Setup::LayerBytes() const {
  const PagedKvLayout& l = pool_.layout();
  return int64_t{2} * l.kv_heads * l.block_tokens() * l.row_bytes();
}

void Setup::ReadInOrder(int threads) const {
  const PagedKvLayout& l = pool_.layout();
  const int32_t layer = (params_.layer + 2) % l.layers;
  std::vector<MemoryRun> runs;
  for (int64_t i = 0; i < table_.rows * table_.columns; ++i) {
    const int64_t at = l.RowOffset(table_.ids[i], layer, 0, false, 0) * ElementBytes(l.dtype);
    runs.push_back({pool_.view().base + at, LayerBytes()});
  }
  const size_t part =
      (runs.size() + static_cast<size_t>(threads) - 1) / static_cast<size_t>(threads);
  std::vector<std::jthread> readers;
  for (size_t from = 0; from < runs.size(); from += part) {
    const auto mine = std::span(runs).subspan(from, std::min(part, runs.size() - from));
    readers.emplace_back([mine] { sink = ReadRuns(mine); });
  }
}

void Setup::RepeatBlocks(int64_t bytes) {
  const int64_t few = bytes / LayerBytes();
  repeated_ = ids_;
  if (bytes > 0) {
    const auto period = static_cast<size_t>(std::max<int64_t>(1, few));
    for (size_t i = period; i < repeated_.size(); ++i) repeated_[i] = repeated_[i - period];
  }
  table_.ids = repeated_.data();
}

double Setup::KvBytes() const {
  const PagedKvLayout& l = pool_.layout();
  return static_cast<double>(table_.rows * lens_[0] * 2 * l.kv_heads * l.row_bytes());
}

double Setup::Flops() const {
  const double n = static_cast<double>(cu_[1]);
  const double past = static_cast<double>(lens_[0]) - n;
  return 4.0 * pool_.layout().head_dim * params_.q_heads * static_cast<double>(table_.rows) *
         (n * past + n * (n + 1) / 2);
}

}  // namespace quire::kernels::bench
