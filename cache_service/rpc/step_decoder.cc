#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cache_service/base/error.h"
#include "cache_service/rpc/proto_convert.h"
#include "cache_service/rpc/step_convert.h"

namespace quire {
namespace {

absl::Status ColumnError(const std::string& field, const char* problem, uint64_t given,
                         uint64_t expected) {
  return ToStatus(InvalidArgument(field, problem, {{"given", given}, {"limit", expected}}));
}

uint64_t EntriesOf(const v1::Operation& operation) {
  int entries = 1;
  if (operation.has_advance()) entries = operation.advance().sequences_size();
  if (operation.has_fork()) entries = operation.fork().children_size();
  return entries > 1 ? static_cast<uint64_t>(entries) : 1;
}

absl::Status CheckSize(const v1::StepBatch& batch, uint32_t max_operations) {
  uint64_t entries = 0;
  for (const v1::Operation& operation : batch.operations()) entries += EntriesOf(operation);
  if (entries <= max_operations) return absl::OkStatus();
  return ColumnError("operations", "too many operations and column entries", entries,
                     max_operations);
}

// Counts are 32 bit and many, so their sum is taken in 64.
uint64_t SumOf(const google::protobuf::RepeatedField<uint32_t>& counts) {
  uint64_t sum = 0;
  for (const uint32_t count : counts) sum += count;
  return sum;
}

// Made where something is wrong, which is hardly ever.
std::string FieldOf(int index, const char* name) {
  return absl::StrCat("operations[", index, "]", name);
}

absl::Status CheckColumns(const v1::AdvanceOperation& advance, int index) {
  const auto entries = static_cast<uint64_t>(advance.sequences_size());
  const std::pair<const char*, int> columns[] = {{".start_lengths", advance.start_lengths_size()},
                                                 {".token_counts", advance.token_counts_size()},
                                                 {".aheads", advance.aheads_size()}};
  for (const auto& [name, size] : columns) {
    const bool may_be_absent = name != columns[0].first;
    if (static_cast<uint64_t>(size) == entries || (may_be_absent && size == 0)) continue;
    return ColumnError(absl::StrCat(FieldOf(index, ".advance"), name),
                       "another length than sequences", static_cast<uint64_t>(size), entries);
  }
  if (advance.ahead() > 0 && advance.aheads_size() > 0) {
    return ColumnError(FieldOf(index, ".advance.ahead"), "given for all entries and per entry",
                       advance.ahead(), 0);
  }
  const uint64_t expected =
      advance.token_counts_size() == 0 ? entries : SumOf(advance.token_counts());
  const auto tokens = static_cast<uint64_t>(advance.tokens_size());
  if (tokens == expected) return absl::OkStatus();
  return ColumnError(FieldOf(index, ".advance.tokens"), "the token counts do not add up to it",
                     tokens, expected);
}

absl::StatusOr<BeginOp> ToBegin(const v1::BeginOperation& begin, const std::string& field,
                                const Caller& caller) {
  BeginOp op;
  op.sequence = begin.sequence();
  op.tokens = View(begin.tokens());
  auto parts = FromProto(begin.namespace_(), caller);
  if (!parts.ok()) return parts.status();
  op.namespace_parts = *std::move(parts);
  if (begin.has_allocate_tokens()) op.allocate_tokens = begin.allocate_tokens();
  op.recompute_tail = begin.recompute_tail();
  op.skip_cache_read = begin.skip_cache_read();
  auto retention = FromProto(begin.retention(), field + ".retention");
  if (!retention.ok()) return retention.status();
  op.retention = *std::move(retention);
  auto digests = FromProto(begin.digests(), field + ".digests");
  if (!digests.ok()) return digests.status();
  op.digests = *std::move(digests);
  op.reserve_tokens = begin.reserve_tokens();
  op.reserve_sequences = begin.reserve_sequences();
  return op;
}

AdvanceOp ToAdvance(const v1::AdvanceOperation& advance) {
  return {.sequences = View(advance.sequences()),
          .start_lengths = View(advance.start_lengths()),
          .tokens = View(advance.tokens()),
          .token_counts = View(advance.token_counts()),
          .ahead = advance.ahead(),
          .aheads = View(advance.aheads())};
}

absl::StatusOr<FinishOp> ToFinish(const v1::FinishOperation& finish, const std::string& field) {
  auto retention = FromProto(finish.retention(), field + ".retention");
  if (!retention.ok()) return retention.status();
  return FinishOp{finish.sequence(), finish.drop(), *std::move(retention)};
}

}  // namespace

absl::Status StepDecoder::Decode(const v1::StepBatch& batch, const Caller& caller,
                                 uint32_t max_operations) {
  operations_.clear();
  if (absl::Status status = CheckSize(batch, max_operations); !status.ok()) return status;
  operations_.reserve(static_cast<size_t>(batch.operations_size()));
  for (int i = 0; i < batch.operations_size(); ++i) {
    if (absl::Status status = Add(batch.operations(i), i, caller); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status StepDecoder::Add(const v1::Operation& operation, int index, const Caller& caller) {
  switch (operation.operation_case()) {
    case v1::Operation::kBegin: {
      auto begin = ToBegin(operation.begin(), FieldOf(index, ".begin"), caller);
      if (!begin.ok()) return begin.status();
      operations_.emplace_back(*std::move(begin));
      return absl::OkStatus();
    }
    case v1::Operation::kAdvance: {
      const absl::Status status = CheckColumns(operation.advance(), index);
      if (status.ok()) operations_.emplace_back(ToAdvance(operation.advance()));
      return status;
    }
    case v1::Operation::kExtend: {
      const auto& op = operation.extend();
      operations_.emplace_back(ExtendOp{op.sequence(), op.start_length(), op.slots()});
      return absl::OkStatus();
    }
    case v1::Operation::kCommit: {
      const auto& op = operation.commit();
      operations_.emplace_back(CommitOp{op.sequence(), op.start_length(), op.committed_length()});
      return absl::OkStatus();
    }
    case v1::Operation::kFork: {
      const auto& op = operation.fork();
      operations_.emplace_back(ForkOp{op.sequence(), op.start_length(), View(op.children())});
      return absl::OkStatus();
    }
    case v1::Operation::kTruncate: {
      const auto& op = operation.truncate();
      operations_.emplace_back(TruncateOp{op.sequence(), op.start_length(), op.length()});
      return absl::OkStatus();
    }
    case v1::Operation::kFinish: {
      auto finish = ToFinish(operation.finish(), FieldOf(index, ".finish"));
      if (!finish.ok()) return finish.status();
      operations_.emplace_back(*std::move(finish));
      return absl::OkStatus();
    }
    case v1::Operation::OPERATION_NOT_SET:
      break;
  }
  return ToStatus(InvalidArgument(FieldOf(index, ""), "no operation that this server knows"));
}

}  // namespace quire
