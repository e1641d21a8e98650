// Keys and values in the blocks of a pool, addressed through block tables.
//
//   auto paged = PagedKv::Create(config, pool, *MakeKernels({}));
//   (*paged)->CopyBlocks(orders);                  // an answer's copy orders, before the launch
//   (*paged)->Prepare(batch, tables);              // one table per sequence of the batch and group
//   model->Forward(batch, **paged, logits);
#ifndef QUIRE_WORKER_MODEL_PAGED_KV_H_
#define QUIRE_WORKER_MODEL_PAGED_KV_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "worker/model/kernel_choice.h"
#include "worker/model/kv_attention.h"

namespace quire::model {

// One layer group of the pool: its layers, in the order in which they lie in a block.
struct PagedGroup {
  uint32_t window_tokens = 0;
  std::vector<uint32_t> layers;
};

// Where the blocks are. `base` stays owned by the caller and must outlive the PagedKv.
struct PagedPool {
  std::byte* base = nullptr;
  uint32_t block_count = 0;
  uint64_t block_bytes = 0;
  uint32_t block_tokens = 0;
  std::vector<PagedGroup> groups;
};

// A copy order of an answer.
struct GroupCopy {
  uint32_t group = 0;
  kernels::CopyOrder order;
};

// Tables of one sequence, one per group. They are only read during Prepare.
using SequenceTables = std::vector<std::span<const int32_t>>;

// Not thread-safe.
class PagedKv final : public KvAttention {
 public:
  // INVALID_ARGUMENT if groups and model do not fit together.
  static absl::StatusOr<std::unique_ptr<PagedKv>> Create(const ModelConfig& config,
                                                         const PagedPool& pool,
                                                         std::unique_ptr<kernels::Backend> backend);

  // Executes orders as if one after another.
  absl::Status CopyBlocks(std::span<const GroupCopy> copies);

  // Sets up the launch of `batch`; tables[i] belongs to batch.sequences[i]. A table that does not
  // cover its sequence is OUT_OF_RANGE.
  absl::Status Prepare(const LaunchBatch& batch, std::span<const SequenceTables> tables);

  absl::Status Run(int32_t layer, const AttentionRows& rows) override;

  // The kernels' view of a group's blocks.
  const kernels::KvPoolView& view(size_t group) const { return groups_[group].view; }

 private:
  struct Place {
    size_t group = 0;
    int32_t index = 0;
  };

  struct Group {
    kernels::KvPoolView view;
    kernels::AttentionMask mask;
    // Of the current launch.
    std::vector<int32_t> ids;
    int64_t columns = 0;
    std::vector<int64_t> slots;
    kernels::AttentionPlan plan;
    bool planned = false;
  };

  PagedKv(const ModelConfig& config, std::unique_ptr<kernels::Backend> backend)
      : config_(config), backend_(std::move(backend)) {}

  absl::Status AddGroup(const PagedPool& pool, const PagedGroup& group);
  absl::Status FillTables(const LaunchBatch& batch, std::span<const SequenceTables> tables,
                          size_t index);
  absl::Status FillSlots(const LaunchBatch& batch, Group& group) const;
  absl::Status MakePlan(Group& group, const kernels::AttentionParams& call);
  kernels::BlockTableView table_view(const Group& group) const;
  kernels::AttentionParams params(const Group& group) const;

  ModelConfig config_;
  const std::unique_ptr<kernels::Backend> backend_;
  std::vector<Group> groups_;
  std::vector<Place> places_;
  // Of the current launch.
  std::vector<int32_t> lens_;
  std::vector<int32_t> cu_q_lens_;
  int32_t longest_q_ = 0;
  std::vector<std::byte> workspace_;
};

}  // namespace quire::model

#endif  // QUIRE_WORKER_MODEL_PAGED_KV_H_
