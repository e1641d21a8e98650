#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "kernels/check_tensor.h"
#include "kernels/hash.h"
#include "kernels/validate.h"

namespace quire::kernels {
namespace {

using std::to_string;

// Of tokens, states and rows in one call.
constexpr int64_t kMaxCount = INT32_MAX;

// Open addressing over non-negative keys; sized once for `count` insertions.
class SmallIntegerSet {
 public:
  explicit SmallIntegerSet(size_t count)
      : mask_(std::bit_ceil(2 * count + 2) - 1), keys_(mask_ + 1, -1) {}

  // False if it was there.
  bool Insert(int64_t key) {
    size_t at = Mix64(static_cast<uint64_t>(key)) & mask_;
    while (keys_[at] != -1) {
      if (keys_[at] == key) return false;
      at = (at + 1) & mask_;
    }
    keys_[at] = key;
    return true;
  }

  bool Contains(int64_t key) const {
    size_t at = Mix64(static_cast<uint64_t>(key)) & mask_;
    while (keys_[at] != -1 && keys_[at] != key) at = (at + 1) & mask_;
    return keys_[at] == key;
  }

 private:
  size_t mask_;
  std::vector<int64_t> keys_;
};

Status CheckId(const char* argument, size_t index, int32_t id, const KvPoolView& pool) {
  if (id >= 0 && id < pool.num_blocks) return Status::Ok();
  return Status::OutOfRange(argument, "block " + to_string(id) + " at " + to_string(index) +
                                          ", the pool has " + to_string(pool.num_blocks) +
                                          " blocks");
}

TensorArgument RowsOf(const KvPoolView& pool, const KvRows& rows, int64_t tokens, bool is_v) {
  return {.name = is_v ? "rows.v" : "rows.k",
          .row_name = "token",
          .data = is_v ? rows.v : rows.k,
          .dtype = rows.dtype,
          .rows = tokens,
          .row_stride = is_v ? rows.v_token_stride : rows.k_token_stride,
          .heads = pool.layout.kv_heads,
          .head_stride = is_v ? rows.v_head_stride : rows.k_head_stride,
          .run = pool.layout.head_dim};
}

Status CheckRowTensors(const KvPoolView& pool, const KvRows& rows, int64_t tokens) {
  if (Status s = CheckFloatType("rows.dtype", rows.dtype); !s.ok()) return s;
  if (rows.layer < 0 || rows.layer >= pool.layout.layers) {
    return Status::OutOfRange("rows.layer", "layer is " + to_string(rows.layer) +
                                                ", the group has " + to_string(pool.layout.layers));
  }
  if (Status s = CheckTensor(RowsOf(pool, rows, tokens, false)); !s.ok()) return s;
  if (Status s = CheckTensor(RowsOf(pool, rows, tokens, true)); !s.ok()) return s;
  if (Status s = CheckScales("rows.k_scale", rows.k_scale, pool.layout); !s.ok()) return s;
  return CheckScales("rows.v_scale", rows.v_scale, pool.layout);
}

Status CheckTargets(const KvPoolView& pool, const TokenTargets& targets) {
  if (targets.tokens > 0 && targets.slots == nullptr) {
    return Status::Invalid("targets.slots", "slots is null");
  }
  const int64_t limit = pool.num_blocks * pool.layout.block_tokens();
  SmallIntegerSet seen(static_cast<size_t>(targets.tokens));
  for (int64_t i = 0; i < targets.tokens; ++i) {
    const int64_t slot = targets.slots[i];
    if (slot < 0) continue;
    if (slot >= limit) {
      return Status::OutOfRange("targets.slots", "target " + to_string(slot) + " of token " +
                                                     to_string(i) + ", the pool has " +
                                                     to_string(limit) + " slots");
    }
    if (!seen.Insert(slot)) {
      return Status::Invalid(
          "targets.slots",
          "target " + to_string(slot) + " is given twice, again by token " + to_string(i));
    }
  }
  return Status::Ok();
}

// content_bytes() each, without a product that may overflow.
Status CheckDense(const char* argument, const KvPoolView& pool, std::span<const int32_t> ids,
                  std::span<const std::byte> dense) {
  const auto content = static_cast<size_t>(pool.layout.content_bytes());
  if (dense.size() / content == ids.size() && dense.size() % content == 0) return Status::Ok();
  return Status(StatusCode::kNoSpace, argument,
                to_string(ids.size()) + " blocks take " + to_string(content) + " bytes each, not " +
                    to_string(dense.size()) + " in all");
}

// What ValidatePool says, of one of two pools: "pool.base" is "source.base", "layout" is
// "source.layout".
Status Rename(const Status& status, const std::string& pool) {
  std::string field = status.argument();
  if (field.starts_with("pool")) field.erase(0, 5);
  return Status(status.code(), pool + "." + field, status.message());
}

bool ShareMemory(const KvPoolView& a, const KvPoolView& b) {
  const auto first = reinterpret_cast<uintptr_t>(a.base);
  const auto second = reinterpret_cast<uintptr_t>(b.base);
  return first < second + static_cast<uintptr_t>(b.bytes) &&
         second < first + static_cast<uintptr_t>(a.bytes);
}

bool SameContent(const PagedKvLayout& a, const PagedKvLayout& b) {
  return a.dtype == b.dtype && a.scale_kind == b.scale_kind && a.layers == b.layers &&
         a.kv_heads == b.kv_heads && a.head_dim == b.head_dim &&
         a.log2_block_tokens == b.log2_block_tokens;
}

}  // namespace

Status ValidateWrite(const KvPoolView& pool, const KvRows& rows, const TokenTargets& targets) {
  if (Status s = ValidatePool(pool); !s.ok()) return s;
  // More rows than slots cannot all have their own; negative targets may still be some.
  if (targets.tokens < 0 || targets.tokens > kMaxCount) {
    return Status::OutOfRange("targets.tokens",
                              to_string(targets.tokens) + " tokens, must be 0..2^31-1");
  }
  if (Status s = CheckRowTensors(pool, rows, targets.tokens); !s.ok()) return s;
  return CheckTargets(pool, targets);
}

Status ValidateCopies(const KvPoolView& pool, std::span<const CopyOrder> orders) {
  if (Status s = ValidatePool(pool); !s.ok()) return s;
  for (size_t i = 0; i < orders.size(); ++i) {
    if (Status s = CheckId("orders.source", i, orders[i].source, pool); !s.ok()) return s;
    if (Status s = CheckId("orders.destination", i, orders[i].destination, pool); !s.ok()) return s;
    if (orders[i].tokens < 0 || orders[i].tokens > pool.layout.block_tokens()) {
      return Status::OutOfRange("orders.tokens", to_string(orders[i].tokens) + " tokens in order " +
                                                     to_string(i) + ", a block has " +
                                                     to_string(pool.layout.block_tokens()));
    }
  }
  return Status::Ok();
}

Status ValidateGather(const KvPoolView& pool, std::span<const int32_t> ids,
                      std::span<const std::byte> destination) {
  if (Status s = ValidatePool(pool); !s.ok()) return s;
  if (Status s = CheckDense("destination", pool, ids, destination); !s.ok()) return s;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (Status s = CheckId("ids", i, ids[i], pool); !s.ok()) return s;
  }
  return Status::Ok();
}

Status ValidateScatter(const KvPoolView& pool, std::span<const int32_t> ids,
                       std::span<const std::byte> source) {
  if (Status s = ValidatePool(pool); !s.ok()) return s;
  if (Status s = CheckDense("source", pool, ids, source); !s.ok()) return s;
  SmallIntegerSet seen(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (Status s = CheckId("ids", i, ids[i], pool); !s.ok()) return s;
    if (!seen.Insert(ids[i])) {
      return Status::Invalid("ids", "block " + to_string(ids[i]) + " is written twice");
    }
  }
  return Status::Ok();
}

Status ValidateTransfer(const KvPoolView& source, const KvPoolView& destination,
                        std::span<const BlockPair> pairs) {
  if (Status s = ValidatePool(source); !s.ok()) return Rename(s, "source");
  if (Status s = ValidatePool(destination); !s.ok()) return Rename(s, "destination");
  if (!SameContent(source.layout, destination.layout)) {
    return Status::Invalid("destination.layout", "the pools hold blocks of different shape: id " +
                                                     to_string(source.layout.id) + " and " +
                                                     to_string(destination.layout.id));
  }
  const bool same_pool = source.base == destination.base;
  if (ShareMemory(source, destination) &&
      !(same_pool && source.layout.id == destination.layout.id)) {
    return Status::Invalid("destination.base",
                           "the pools share memory but not their base and layout");
  }
  SmallIntegerSet written(pairs.size());
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (Status s = CheckId("pairs.source", i, pairs[i].source, source); !s.ok()) return s;
    if (Status s = CheckId("pairs.destination", i, pairs[i].destination, destination); !s.ok()) {
      return s;
    }
    if (!written.Insert(pairs[i].destination)) {
      return Status::Invalid("pairs.destination",
                             "block " + to_string(pairs[i].destination) + " is written twice");
    }
  }
  if (!same_pool) return Status::Ok();
  for (const BlockPair& pair : pairs) {
    if (written.Contains(pair.source)) {
      return Status::Invalid("pairs.source",
                             "block " + to_string(pair.source) + " is both read and written");
    }
  }
  return Status::Ok();
}

Status ValidateChecksums(const KvPoolView& pool, std::span<const ChecksumOrder> orders,
                         size_t sums) {
  if (Status s = ValidatePool(pool); !s.ok()) return s;
  if (sums != orders.size()) {
    return Status(StatusCode::kNoSpace, "sums",
                  to_string(orders.size()) + " orders but room for " + to_string(sums) + " sums");
  }
  for (size_t i = 0; i < orders.size(); ++i) {
    if (Status s = CheckId("orders.block", i, orders[i].block, pool); !s.ok()) return s;
    if (orders[i].slot_begin < 0) {
      return Status::OutOfRange("orders.slot_begin", "slot " + to_string(orders[i].slot_begin) +
                                                         " in order " + to_string(i));
    }
    if (orders[i].slot_begin > orders[i].slot_end ||
        orders[i].slot_end > pool.layout.block_tokens()) {
      return Status::OutOfRange("orders.slot_end", "slots " + to_string(orders[i].slot_begin) +
                                                       ".." + to_string(orders[i].slot_end) +
                                                       " in order " + to_string(i));
    }
  }
  return Status::Ok();
}

}  // namespace quire::kernels
