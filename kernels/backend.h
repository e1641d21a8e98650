// Paged-attention kernels behind one plain interface.
//
//   auto backend = CreateBackend("cpu", {.threads = 2});
//   (*backend)->WriteKv(pool, rows, targets, nullptr);            // new K and V of this layer
//   auto plan = (*backend)->Plan(pool, table, params, options);   // once per step and layer group
//   std::vector<std::byte> workspace(plan->workspace_bytes);
//   (*backend)->DecodeAttention(pool, table, params, *plan, workspace);
//
// Conventions. Tensors are row major with int64 strides in elements; the innermost dimension is
// dense, and an address is a multiple of its element's size. The caller owns every buffer, and
// everything must stay valid and unchanged by others for the length of the call. Inputs are checked
// before anything is read or written; the status names the argument at fault. Results depend on
// inputs and plan only, never on thread timing.
//
// A backend object is thread-compatible: one call at a time per object. Different objects may work
// on the same pool as long as no one writes a slot that another reads.
#ifndef QUIRE_KERNELS_BACKEND_H_
#define QUIRE_KERNELS_BACKEND_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "kernels/kv_layout.h"
#include "kernels/plan.h"
#include "kernels/status.h"

namespace quire::kernels {

enum class MemoryKind : uint8_t { kHost = 0, kPageLockedHost = 1, kDevice = 2 };

// The blocks of one layer group. `base` is 16-byte aligned.
struct KvPoolView {
  std::byte* base = nullptr;
  int64_t bytes = 0;
  int64_t num_blocks = 0;
  PagedKvLayout layout;
  MemoryKind memory = MemoryKind::kHost;
};

// One row of block ids per sequence: id of position p is ids[row * row_stride + p / block_tokens].
// kNoBlock is allowed where no query can see: past the length and wholly outside the window.
struct BlockTableView {
  const int32_t* ids = nullptr;
  int64_t row_stride = 0;  // >= columns
  int64_t rows = 0;        // sequences
  int64_t columns = 0;
  const int32_t* lens = nullptr;  // [rows] tokens whose K and V are written, new ones included
};

// Rows of K and V to store: [tokens][kv_heads][head_dim].
struct KvRows {
  const void* k = nullptr;
  const void* v = nullptr;
  DType dtype = DType::kF32;  // kF32, kF16 or kBF16
  int64_t k_token_stride = 0;
  int64_t k_head_stride = 0;
  int64_t v_token_stride = 0;
  int64_t v_head_stride = 0;
  int32_t layer = 0;  // inside the group
  // For scale kinds kPerTensor (one value) and kPerHead ([kv_heads]); stored = value / scale.
  // With kPerToken the call computes max |row| / largest code and stores it beside the rows.
  const float* k_scale = nullptr;
  const float* v_scale = nullptr;
};

// Where each token goes: block * block_tokens + slot. Negative: the token is skipped.
struct TokenTargets {
  const int64_t* slots = nullptr;
  int64_t tokens = 0;
};

struct WriteReport {
  int64_t tokens_written = 0;
  // NaN elements met while quantising. They are stored as the NaN code (e4m3) or 0 (int8), and a
  // fast reader may take the code for a number: do not use such a token.
  int64_t nan_inputs = 0;
};

// Query tokens of all sequences one after another: q and out are [q_rows][q_heads][head_dim].
//
// With s = softcap(scale * k_scale * q.k) + slope * (key position - query position), each row is
// softmax(s over visible keys) * V * v_scale. A row that sees no key gives 0 and LSE -inf.
// Query i of a sequence's q_len stands at position len - q_len + i.
struct AttentionParams {
  const void* q = nullptr;
  DType q_dtype = DType::kF32;  // kF32, kF16 or kBF16
  int64_t q_row_stride = 0;
  int64_t q_head_stride = 0;
  void* out = nullptr;
  DType out_dtype = DType::kF32;
  int64_t out_row_stride = 0;
  int64_t out_head_stride = 0;
  float* lse = nullptr;  // optional, natural logarithm; strides keep rows apart
  int64_t lse_row_stride = 0;
  int64_t lse_head_stride = 1;

  int64_t q_rows = 0;                  // all query tokens
  const int32_t* cu_q_lens = nullptr;  // [table.rows + 1], from 0 to q_rows; null: one each
  int32_t q_heads = 0;                 // a multiple of kv_heads, at most 32 per KV head
  int32_t layer = 0;                   // inside the group
  float scale = 1.0f;                  // usually 1 / sqrt(head_dim)
  AttentionMask mask;
  float softcap = 0.0f;                 // > 0: s = softcap * tanh(s / softcap)
  const float* alibi_slopes = nullptr;  // [q_heads] or null
  const float* sinks = nullptr;         // [q_heads] logits that join the denominator, or null
  // For scale kinds kPerTensor (one value) and kPerHead ([kv_heads]).
  const float* k_scale = nullptr;
  const float* v_scale = nullptr;
};

// States to merge: out is [states][rows][heads][head_dim] fp32, lse [states][rows][heads], dense.
// An LSE of +inf reads as -inf (an empty state).
struct MergeParams {
  const float* partial_out = nullptr;
  const float* partial_lse = nullptr;
  int64_t states = 0;
  int64_t rows = 0;
  int32_t heads = 0;
  int32_t head_dim = 0;          // any
  const float* sinks = nullptr;  // [heads], joined once
  void* out = nullptr;           // [rows][heads][head_dim], dense
  DType out_dtype = DType::kF32;
  float* lse = nullptr;  // [rows][heads], optional
};

// Copies the first `tokens` slots of every (layer, head, K|V) with their scales.
struct CopyOrder {
  int32_t source = kNoBlock;
  int32_t destination = kNoBlock;
  int32_t tokens = 0;  // 0..block_tokens
};

struct BlockPair {
  int32_t source = kNoBlock;
  int32_t destination = kNoBlock;
};

// Which slots of a block to sum. The sum over slots [0, n) equals the wrapped sum of its parts.
struct ChecksumOrder {
  int32_t block = kNoBlock;
  int32_t slot_begin = 0;
  int32_t slot_end = 0;
};

using ChecksumSums = std::array<uint64_t, 2>;

// Start value for ChecksumBlocks, the same for every preset and backend.
uint64_t ChecksumSeed(const PagedKvLayout& layout, uint64_t group_index);

// Binds sums to the content hash they are filed under; this is what is stored and compared.
ChecksumSums BindChecksum(const ChecksumSums& sums, uint64_t chain);

// The calls check their arguments, the same for every backend, and turn what the standard library
// throws into a status; a backend implements only the work behind them.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;

  // Stores rows into their slots, quantising if the pool is e4m3 or int8. Duplicate targets are
  // refused. `report` may be null.
  Status WriteKv(const KvPoolView& pool, const KvRows& rows, const TokenTargets& targets,
                 WriteReport* report);

  // Splits the work of one step. parts == 0 in `options` means this backend's own parallelism.
  // Uses lens, cu_q_lens, mask and head counts only: valid for all layers and any q and out.
  Result<AttentionPlan> Plan(const KvPoolView& pool, const BlockTableView& table,
                             const AttentionParams& params, const PlanOptions& options);

  // As Plan, for sequences that begin with the same `prefix_tokens` (whole blocks with equal ids).
  // Falls back to Plan where a window cuts into the prefix.
  Result<AttentionPlan> PlanCascade(const KvPoolView& pool, const BlockTableView& table,
                                    int64_t prefix_tokens, const AttentionParams& params,
                                    const PlanOptions& options);

  // Few query tokens per sequence. `workspace` is float aligned and at least plan.workspace_bytes;
  // it may be null if that is 0. Reads only visible keys. Works with cascade plans too.
  Status DecodeAttention(const KvPoolView& pool, const BlockTableView& table,
                         const AttentionParams& params, const AttentionPlan& plan,
                         std::span<std::byte> workspace);

  // Many query tokens per sequence: prefill, chunks on a cached prefix, draft verification. Same
  // contract and results within the same bounds as DecodeAttention: the plan decides how many rows
  // an item has, and the item the kernel.
  Status AppendAttention(const KvPoolView& pool, const BlockTableView& table,
                         const AttentionParams& params, const AttentionPlan& plan,
                         std::span<std::byte> workspace);

  Status MergeStates(const MergeParams& params);

  // As if run one after another in list order, whatever overlaps.
  Status CopyBlocks(const KvPoolView& pool, std::span<const CopyOrder> orders);

  // Between blocks and dense memory of ids.size() * content_bytes(), block after block, each as
  // [layer][kv_head][K|V][token][dim], then scales [layer][kv_head][K|V][token], for any layout.
  // Scatter refuses a repeated id.
  Status GatherBlocks(const KvPoolView& pool, std::span<const int32_t> ids,
                      std::span<std::byte> destination);
  Status ScatterBlocks(const KvPoolView& pool, std::span<const int32_t> ids,
                       std::span<const std::byte> source);

  // Whole blocks from one pool to another of equal shape (offload, onboard). Complete on return.
  // Refuses a repeated destination, within one pool a block that is source and destination, and
  // pools that share memory in any other way.
  Status TransferBlocks(const KvPoolView& source, const KvPoolView& destination,
                        std::span<const BlockPair> pairs);

  // One sum per order, in order.
  Status ChecksumBlocks(const KvPoolView& pool, uint64_t seed,
                        std::span<const ChecksumOrder> orders, std::span<ChecksumSums> sums);

 private:
  // Device memory is refused if false.
  virtual bool TakesDevicePools() const { return false; }

  // Workers that run at once: PlanOptions::parts where the caller gave none.
  virtual int Parts(const KvPoolView& pool) const = 0;

  // The work. Arguments are checked, and there is something to do. `nan_inputs` may be null.
  virtual Status DoWrite(const KvPoolView& pool, const KvRows& rows, const TokenTargets& targets,
                         int64_t* nan_inputs) = 0;
  virtual Status DoAttention(const KvPoolView& pool, const BlockTableView& table,
                             const AttentionParams& params, const AttentionPlan& plan,
                             std::span<std::byte> workspace) = 0;
  virtual Status DoMerge(const MergeParams& params) = 0;
  virtual Status DoCopy(const KvPoolView& pool, std::span<const CopyOrder> orders) = 0;
  virtual Status DoGather(const KvPoolView& pool, std::span<const int32_t> ids,
                          std::span<std::byte> destination) = 0;
  virtual Status DoScatter(const KvPoolView& pool, std::span<const int32_t> ids,
                           std::span<const std::byte> source) = 0;
  virtual Status DoTransfer(const KvPoolView& source, const KvPoolView& destination,
                            std::span<const BlockPair> pairs) = 0;
  virtual Status DoChecksum(const KvPoolView& pool, uint64_t seed,
                            std::span<const ChecksumOrder> orders,
                            std::span<ChecksumSums> sums) = 0;

  Status CheckMemory(const KvPoolView& pool, const char* argument) const;
};

struct BackendOptions {
  int threads = 1;  // "cpu": 1..256, this call's thread included; others ignore it
};

// "cpu" (fast), "cuda" (device_backend.h; UNSUPPORTED without a GPU) or "reference" (fp64, slow, to
// compare with).
Result<std::unique_ptr<Backend>> CreateBackend(std::string_view name,
                                               const BackendOptions& options);

}  // namespace quire::kernels

#endif  // QUIRE_KERNELS_BACKEND_H_
