#include "tests/kernels/testing/small_call.h"

namespace quire::kernels::testing {
namespace {

constexpr int64_t kBlocks = 8;
constexpr int64_t kHeads = 4;
constexpr int64_t kDim = 64;

PagedKvLayout SmallLayout() {
  return Layout({.dtype = DType::kE4M3,
                 .layers = 2,
                 .kv_heads = 2,
                 .head_dim = kDim,
                 .scale_kind = ScaleKind::kPerHead});
}

template <typename T>
void Append(const T* values, size_t count, std::vector<std::byte>* bytes) {
  const auto* begin = reinterpret_cast<const std::byte*>(values);
  bytes->insert(bytes->end(), begin, begin + count * sizeof(T));
}

}  // namespace

const char* Name(CallKind kind) {
  constexpr const char* kNames[] = {"WriteKv",        "Plan",          "PlanCascade",
                                    "Decode",         "Append",        "MergeStates",
                                    "CopyBlocks",     "GatherBlocks",  "ScatterBlocks",
                                    "TransferBlocks", "ChecksumBlocks"};
  return kNames[static_cast<size_t>(kind)];
}

SmallCall::SmallCall()
    : source(FilledPool(SmallLayout(), kBlocks)),
      target(FilledPool(SmallLayout(), kBlocks)),
      table_ids{6, 2, 0, 6, 5, 7},
      q(3 * kHeads * kDim, 0.5f),
      out(3 * kHeads * kDim, -7.0f),
      lse(3 * kHeads, -7.0f),
      partial_out(2 * 3 * kHeads * kDim, 0.5f),
      partial_lse(2 * 3 * kHeads, 0.5f),
      workspace(4096, -7.0f),
      dense(static_cast<size_t>(2 * source.layout().content_bytes())),
      pool(source.view()),
      destination(target.view()),
      sums(2, ChecksumSums{7, 7}) {
  table = {table_ids.data(), 3, 2, 3, lens.data()};
  attention = {.q = q.data(),
               .q_row_stride = kHeads * kDim,
               .q_head_stride = kDim,
               .out = out.data(),
               .out_row_stride = kHeads * kDim,
               .out_head_stride = kDim,
               .lse = lse.data(),
               .lse_row_stride = kHeads,
               .q_rows = 3,
               .cu_q_lens = cu.data(),
               .q_heads = kHeads,
               .scale = 0.125f,
               .mask = {},
               .alibi_slopes = slopes.data(),
               .sinks = sinks.data(),
               .k_scale = k_scale.data(),
               .v_scale = v_scale.data()};
  options.parts = 2;
  options.fixed_split = 16;  // pieces, so that there is a workspace
  space = std::as_writable_bytes(std::span<float>(workspace));
  rows = {.k = q.data(),
          .v = q.data(),
          .k_token_stride = 2 * kDim,
          .k_head_stride = kDim,
          .v_token_stride = 2 * kDim,
          .v_head_stride = kDim,
          .k_scale = k_scale.data(),
          .v_scale = v_scale.data()};
  targets = {slots.data(), 3};
  merge = {.partial_out = partial_out.data(),
           .partial_lse = partial_lse.data(),
           .states = 2,
           .rows = 3,
           .heads = kHeads,
           .head_dim = kDim,
           .sinks = sinks.data(),
           .out = out.data(),
           .lse = lse.data()};
  dense_bytes = dense;
}

Status SmallCall::Run(CallKind kind, Backend& backend) {
  switch (kind) {
    case CallKind::kWrite:
      return backend.WriteKv(pool, rows, targets, &report);
    case CallKind::kPlan:
      return backend.Plan(pool, table, attention, options).status();
    case CallKind::kCascade:
      return backend.PlanCascade(pool, table, prefix_tokens, attention, options).status();
    case CallKind::kDecode:
      return backend.DecodeAttention(pool, table, attention, plan, space);
    case CallKind::kAppend:
      return backend.AppendAttention(pool, table, attention, plan, space);
    case CallKind::kMerge:
      return backend.MergeStates(merge);
    case CallKind::kCopy:
      return backend.CopyBlocks(pool, copies);
    case CallKind::kGather:
      return backend.GatherBlocks(pool, ids, dense_bytes);
    case CallKind::kScatter:
      return backend.ScatterBlocks(pool, ids, dense_bytes);
    case CallKind::kTransfer:
      return backend.TransferBlocks(pool, destination, pairs);
    case CallKind::kChecksum:
      return backend.ChecksumBlocks(pool, 1, checks, sums);
  }
  return Status::Ok();
}

std::vector<std::byte> SmallCall::Memory() const {
  std::vector<std::byte> bytes;
  for (const TestPool* each : {&source, &target}) {
    Append(each->view().base, static_cast<size_t>(each->view().bytes), &bytes);
  }
  for (const std::vector<float>* each : {&out, &lse, &workspace, &partial_out, &partial_lse}) {
    Append(each->data(), each->size(), &bytes);
  }
  Append(dense.data(), dense.size(), &bytes);
  Append(sums.data(), sums.size(), &bytes);
  Append(&report, 1, &bytes);
  return bytes;
}

}  // namespace quire::kernels::testing
