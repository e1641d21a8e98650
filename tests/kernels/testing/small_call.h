// One small valid call of every kind on one pool, to be made bad in one place.
#ifndef QUIRE_TESTS_KERNELS_TESTING_SMALL_CALL_H_
#define QUIRE_TESTS_KERNELS_TESTING_SMALL_CALL_H_

#include <vector>

#include "tests/kernels/testing/blocks.h"

namespace quire::kernels::testing {

enum class CallKind {
  kWrite,
  kPlan,
  kCascade,
  kDecode,
  kAppend,
  kMerge,
  kCopy,
  kGather,
  kScatter,
  kTransfer,
  kChecksum,
};

inline constexpr CallKind kEveryKind[] = {
    CallKind::kWrite,   CallKind::kPlan,     CallKind::kCascade, CallKind::kDecode,
    CallKind::kAppend,  CallKind::kMerge,    CallKind::kCopy,    CallKind::kGather,
    CallKind::kScatter, CallKind::kTransfer, CallKind::kChecksum};

const char* Name(CallKind kind);

// Two sequences, of 40 and 33 tokens with 1 and 2 queries, which share their first block of 16; 8
// blocks of e4m3 with scales per head. All memory that a call could write is here.
struct SmallCall {
  SmallCall();
  SmallCall(const SmallCall&) = delete;
  SmallCall& operator=(const SmallCall&) = delete;

  // What `kind` says of the arguments as they are. Attention takes `plan`.
  Status Run(CallKind kind, Backend& backend);

  // Everything that a call could have written.
  std::vector<std::byte> Memory() const;

  TestPool source;
  TestPool target;
  std::vector<int32_t> table_ids;
  std::vector<int32_t> lens = {40, 33};
  std::vector<int32_t> cu = {0, 1, 3};
  std::vector<float> q;
  std::vector<float> out;
  std::vector<float> lse;
  std::vector<float> k_scale = {0.5f, 0.25f};
  std::vector<float> v_scale = {0.5f, 0.25f};
  std::vector<float> slopes = {0.5f, 0.25f, 0.125f, 0.0625f};
  std::vector<float> sinks = {1, 2, 3, 4};
  std::vector<float> partial_out;
  std::vector<float> partial_lse;
  std::vector<float> workspace;
  std::vector<int64_t> slots = {5, -1, 90};
  std::vector<std::byte> dense;

  KvPoolView pool;
  KvPoolView destination;
  BlockTableView table;
  AttentionParams attention;
  PlanOptions options;
  int64_t prefix_tokens = 16;
  AttentionPlan plan;
  std::span<std::byte> space;
  KvRows rows;
  TokenTargets targets;
  WriteReport report = {-5, -5};
  MergeParams merge;
  std::vector<CopyOrder> copies = {{0, 1, 16}, {1, 2, 7}};
  std::vector<int32_t> ids = {3, 4};
  std::span<std::byte> dense_bytes;
  std::vector<BlockPair> pairs = {{0, 1}, {2, 3}};
  std::vector<ChecksumOrder> checks = {{0, 0, 16}, {1, 2, 5}};
  std::vector<ChecksumSums> sums;
};

}  // namespace quire::kernels::testing

#endif  // QUIRE_TESTS_KERNELS_TESTING_SMALL_CALL_H_
