#include "worker/model/paged_kv.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace quire::model {
namespace {

// Up to this many query tokens per sequence the decode kernel is used.
constexpr int32_t kDecodeTokens = 8;
// Pieces of this length give a sequence the same bits whatever shares its batch.
constexpr int64_t kFixedSplit = 1024;

}  // namespace

absl::StatusOr<std::unique_ptr<PagedKv>> PagedKv::Create(
    const ModelConfig& config, const PagedPool& pool, std::unique_ptr<kernels::Backend> backend) {
  std::unique_ptr<PagedKv> paged(new PagedKv(config, std::move(backend)));
  paged->places_.assign(static_cast<size_t>(config.layers), Place{.group = pool.groups.size()});
  for (const PagedGroup& group : pool.groups) {
    if (absl::Status status = paged->AddGroup(pool, group); !status.ok()) return status;
  }
  for (size_t layer = 0; layer < paged->places_.size(); ++layer) {
    if (paged->places_[layer].group < pool.groups.size()) continue;
    return absl::InvalidArgumentError(absl::StrCat("layer ", layer, " is in no layer group"));
  }
  return paged;
}

absl::Status PagedKv::AddGroup(const PagedPool& pool, const PagedGroup& group) {
  auto layout = kernels::MakeLayout({.dtype = config_.kv_dtype,
                                     .layers = static_cast<int32_t>(group.layers.size()),
                                     .kv_heads = config_.kv_heads,
                                     .head_dim = config_.head_dim,
                                     .block_tokens = static_cast<int32_t>(pool.block_tokens),
                                     .block_bytes = static_cast<int64_t>(pool.block_bytes)});
  if (!layout.ok()) return FromKernel(layout.status());
  for (size_t i = 0; i < group.layers.size(); ++i) {
    const uint32_t layer = group.layers[i];
    if (layer >= places_.size() ||
        config_.window(static_cast<int32_t>(layer)) != group.window_tokens) {
      return absl::InvalidArgumentError(
          absl::StrCat("group of window ", group.window_tokens, " names layer ", layer));
    }
    places_[layer] = {.group = groups_.size(), .index = static_cast<int32_t>(i)};
  }
  Group made;
  made.view = {.base = pool.base,
               .bytes = static_cast<int64_t>(pool.block_bytes) * pool.block_count,
               .num_blocks = pool.block_count,
               .layout = *layout};
  made.mask.window_left =
      group.window_tokens == 0 ? -1 : static_cast<int32_t>(group.window_tokens) - 1;
  groups_.push_back(std::move(made));
  return absl::OkStatus();
}

absl::Status PagedKv::CopyBlocks(std::span<const GroupCopy> copies) {
  // Runs of one group keep the order of the list: all groups draw from one pool, so an order may
  // depend on one of another group before it.
  std::vector<kernels::CopyOrder> run;
  for (size_t i = 0; i < copies.size(); ++i) {
    if (copies[i].group >= groups_.size()) {
      return absl::InvalidArgumentError(absl::StrCat("copy order of group ", copies[i].group));
    }
    run.push_back(copies[i].order);
    if (i + 1 < copies.size() && copies[i + 1].group == copies[i].group) continue;
    const Group& group = groups_[copies[i].group];
    if (auto status = backend_->CopyBlocks(group.view, run); !status.ok()) {
      return FromKernel(status);
    }
    run.clear();
  }
  return absl::OkStatus();
}

absl::Status PagedKv::Prepare(const LaunchBatch& batch, std::span<const SequenceTables> tables) {
  if (tables.size() != batch.sequences.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(tables.size(), " tables for ", batch.sequences.size(), " sequences"));
  }
  lens_.clear();
  cu_q_lens_.assign(1, 0);
  longest_q_ = 0;
  for (const LaunchSequence& sequence : batch.sequences) {
    lens_.push_back(sequence.kv_length());
    cu_q_lens_.push_back(sequence.first_row + sequence.rows);
    longest_q_ = std::max(longest_q_, sequence.rows);
  }
  for (size_t index = 0; index < groups_.size(); ++index) {
    Group& group = groups_[index];
    if (absl::Status status = FillTables(batch, tables, index); !status.ok()) return status;
    if (absl::Status status = FillSlots(batch, group); !status.ok()) return status;
    group.planned = false;
  }
  return absl::OkStatus();
}

absl::Status PagedKv::FillTables(const LaunchBatch& batch, std::span<const SequenceTables> tables,
                                 size_t index) {
  Group& group = groups_[index];
  const int32_t block_tokens = group.view.layout.block_tokens();
  group.columns = 0;
  for (size_t row = 0; row < tables.size(); ++row) {
    if (tables[row].size() != groups_.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("sequence ", row, " has ", tables[row].size(), " tables"));
    }
    const auto needed =
        static_cast<size_t>((batch.sequences[row].kv_length() + block_tokens - 1) / block_tokens);
    if (tables[row][index].size() < needed) {
      return absl::OutOfRangeError(absl::StrCat("the table of sequence ", row, " has ",
                                                tables[row][index].size(), " blocks of ", needed));
    }
    group.columns = std::max(group.columns, static_cast<int64_t>(needed));
  }
  group.ids.assign(tables.size() * static_cast<size_t>(group.columns), kernels::kNoBlock);
  for (size_t row = 0; row < tables.size(); ++row) {
    const std::span<const int32_t> ids = tables[row][index];
    const size_t count = std::min(ids.size(), static_cast<size_t>(group.columns));
    std::copy_n(ids.begin(), count, group.ids.begin() + static_cast<int64_t>(row) * group.columns);
  }
  return absl::OkStatus();
}

absl::Status PagedKv::FillSlots(const LaunchBatch& batch, Group& group) const {
  const int32_t block_tokens = group.view.layout.block_tokens();
  group.slots.clear();
  for (size_t row = 0; row < batch.sequences.size(); ++row) {
    const LaunchSequence& sequence = batch.sequences[row];
    const int32_t* ids = group.ids.data() + static_cast<int64_t>(row) * group.columns;
    for (int32_t i = 0; i < sequence.rows; ++i) {
      const int32_t position = sequence.first_position + i;
      const int64_t block = ids[position / block_tokens];
      if (block < 0) {
        return absl::OutOfRangeError(
            absl::StrCat("sequence ", row, " has no block for position ", position));
      }
      group.slots.push_back(block * block_tokens + position % block_tokens);
    }
  }
  return absl::OkStatus();
}

// One plan serves all layers of a group.
absl::Status PagedKv::MakePlan(Group& group, const kernels::AttentionParams& call) {
  if (group.planned) return absl::OkStatus();
  auto plan = backend_->Plan(group.view, table_view(group), call, {.fixed_split = kFixedSplit});
  if (!plan.ok()) return FromKernel(plan.status());
  group.plan = std::move(*plan);
  group.planned = true;
  if (workspace_.size() < static_cast<size_t>(group.plan.workspace_bytes)) {
    workspace_.resize(static_cast<size_t>(group.plan.workspace_bytes));
  }
  return absl::OkStatus();
}

kernels::BlockTableView PagedKv::table_view(const Group& group) const {
  return {.ids = group.ids.data(),
          .row_stride = group.columns,
          .rows = static_cast<int64_t>(lens_.size()),
          .columns = group.columns,
          .lens = lens_.data()};
}

kernels::AttentionParams PagedKv::params(const Group& group) const {
  kernels::AttentionParams params;
  params.q_row_stride = config_.q_width();
  params.q_head_stride = config_.head_dim;
  params.out_row_stride = config_.q_width();
  params.out_head_stride = config_.head_dim;
  params.q_rows = cu_q_lens_.back();
  params.cu_q_lens = cu_q_lens_.data();
  params.q_heads = config_.q_heads;
  params.scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim));
  params.mask = group.mask;
  return params;
}

absl::Status PagedKv::Run(int32_t layer, const AttentionRows& rows) {
  const Place place = places_[static_cast<size_t>(layer)];
  Group& group = groups_[place.group];
  const kernels::KvRows kv{.k = rows.k,
                           .v = rows.v,
                           .k_token_stride = config_.kv_width(),
                           .k_head_stride = config_.head_dim,
                           .v_token_stride = config_.kv_width(),
                           .v_head_stride = config_.head_dim,
                           .layer = place.index};
  const kernels::TokenTargets targets{group.slots.data(), static_cast<int64_t>(group.slots.size())};
  if (auto status = backend_->WriteKv(group.view, kv, targets, nullptr); !status.ok()) {
    return FromKernel(status);
  }
  kernels::AttentionParams call = params(group);
  call.q = rows.q;
  call.out = rows.out;
  call.layer = place.index;
  if (absl::Status status = MakePlan(group, call); !status.ok()) return status;
  const kernels::BlockTableView table = table_view(group);
  return FromKernel(
      longest_q_ <= kDecodeTokens
          ? backend_->DecodeAttention(group.view, table, call, group.plan, workspace_)
          : backend_->AppendAttention(group.view, table, call, group.plan, workspace_));
}

}  // namespace quire::model
