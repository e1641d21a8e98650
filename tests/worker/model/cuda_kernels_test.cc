// The model on the CUDA backend: the same tables, blocks and copies as on the CPU kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/simt/emulated_runtime.h"
#include "tests/worker/model/heap_pool.h"
#include "worker/model/transformer.h"

namespace quire::model {
namespace {

constexpr uint32_t kBlockTokens = 16;

std::unique_ptr<kernels::Backend> CudaKernels() {
  auto backend = kernels::emulated::MakeBackend({});
  return std::move(*backend);
}

ModelConfig WithDtype(kernels::DType dtype) {
  ModelConfig config;
  config.layers = 6;
  config.hidden = 128;
  config.vocabulary = 100;
  config.kv_dtype = dtype;
  config.layer_windows = FiveToOneWindows(config.layers, 24);
  return config;
}

// A model with blocks of its own, on kernels of one kind.
class Machine {
 public:
  Machine(const ModelConfig& config, std::unique_ptr<kernels::Backend> kernels)
      : config_(config), pool_(config, GroupsOf(config), kBlockTokens, 64) {
    SeededWeights weights(11);
    model_ = *Transformer::Create(config, weights);
    paged_ = *PagedKv::Create(config, pool_.paged(), std::move(kernels));
    for (auto& tables : tables_) tables = pool_.NewTables(48);
  }

  // Copies the first block of a sequence and group over that of another, as an answer may order.
  void CopyFirstBlock(size_t from, size_t to) {
    const GroupCopy copy{0, {tables_[from][0][0], tables_[to][0][0], kBlockTokens}};
    ASSERT_TRUE(paged_->CopyBlocks({&copy, 1}).ok());
  }

  std::vector<float> Launch(const LaunchBatch& batch) {
    const SequenceTables spans[] = {Spans(tables_[0]), Spans(tables_[1])};
    absl::Status status = paged_->Prepare(batch, spans);
    EXPECT_TRUE(status.ok()) << status;
    std::vector<float> logits;
    status = model_->Forward(batch, *paged_, logits);
    EXPECT_TRUE(status.ok()) << status;
    return logits;
  }

 private:
  ModelConfig config_;
  HeapPool pool_;
  std::unique_ptr<Transformer> model_;
  std::unique_ptr<PagedKv> paged_;
  std::vector<std::vector<int32_t>> tables_[2];
};

// Two sequences: `counts` new tokens of each at `positions`.
LaunchBatch BatchOf(const ModelConfig& config, const int32_t (&positions)[2],
                    const int32_t (&counts)[2]) {
  LaunchBatch batch;
  for (int i = 0; i < 2; ++i) {
    const auto tokens = RandomTokens(config, 48, static_cast<uint32_t>(i));
    batch.Add(positions[i], tokens.data() + positions[i], counts[i]);
    batch.logit_rows.push_back(batch.rows() - 1);
  }
  return batch;
}

float LargestDifference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  float largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

class CudaKernelsTest : public testing::TestWithParam<kernels::DType> {};

// A last bit that differs can round a stored key the other way, and so on through the layers: how
// far this may go shows where the model keeps its keys in fp32 instead.
TEST_P(CudaKernelsTest, PromptsDecodesAndCopiesAreAsOnTheCpu) {
  const ModelConfig config = WithDtype(GetParam());
  Machine exact(WithDtype(kernels::DType::kF32), CpuKernels());
  Machine cpu(config, CpuKernels());
  Machine cuda(config, CudaKernels());
  const LaunchBatch launches[] = {
      BatchOf(config, {0, 0}, {37, 20}),   // prompts
      BatchOf(config, {37, 20}, {1, 1}),   // decode
      BatchOf(config, {38, 21}, {5, 12}),  // drafts and a chunk
      BatchOf(config, {43, 33}, {1, 1}),
  };
  float rounding = 1e-4f;
  float difference = 0;
  for (const LaunchBatch& batch : launches) {
    const std::vector<float> logits = cpu.Launch(batch);
    rounding = std::max(rounding, LargestDifference(exact.Launch(batch), logits));
    difference = std::max(difference, LargestDifference(cuda.Launch(batch), logits));
    for (Machine* machine : {&exact, &cpu, &cuda}) machine->CopyFirstBlock(0, 1);
  }
  EXPECT_LE(difference, rounding);
}

INSTANTIATE_TEST_SUITE_P(Types, CudaKernelsTest,
                         testing::Values(kernels::DType::kF32, kernels::DType::kBF16,
                                         kernels::DType::kF16));

}  // namespace
}  // namespace quire::model
