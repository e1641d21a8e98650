#include "kernels/ref/reference.h"

#include <vector>

#include "kernels/guard.h"
#include "kernels/validate.h"

namespace quire::kernels::ref {
namespace {

class ReferenceBackend final : public Backend {
 public:
  std::string_view name() const override { return "reference"; }

  Status WriteKv(const KvPoolView& pool, const KvRows& rows, const TokenTargets& targets,
                 WriteReport* report) override {
    return NoThrow("WriteKv", [&] {
      if (Status s = ValidateWrite(pool, rows, targets); !s.ok()) return s;
      WriteReport own;
      Write(pool, rows, targets, report != nullptr ? report : &own);
      return Status::Ok();
    });
  }

  Result<AttentionPlan> Plan(const KvPoolView& pool, const BlockTableView& table,
                             const AttentionParams& params, const PlanOptions& options) override {
    return NoThrow("Plan", [&] { return PlanAttention(pool, table, params, options, 1); });
  }

  Result<AttentionPlan> PlanCascade(const KvPoolView& pool, const BlockTableView& table,
                                    int64_t prefix_tokens, const AttentionParams& params,
                                    const PlanOptions& options) override {
    return NoThrow("PlanCascade", [&] {
      return PlanSharedPrefix(pool, table, prefix_tokens, params, options, 1);
    });
  }

  Status DecodeAttention(const KvPoolView& pool, const BlockTableView& table,
                         const AttentionParams& params, const AttentionPlan& plan,
                         std::span<std::byte> workspace) override {
    return NoThrow("DecodeAttention", [&] {
      if (Status s = ValidateAttention(pool, table, params); !s.ok()) return s;
      if (Status s = ValidatePlan(pool, table, params, plan, workspace); !s.ok()) return s;
      Attention(pool, table, params);
      return Status::Ok();
    });
  }

  Status AppendAttention(const KvPoolView& pool, const BlockTableView& table,
                         const AttentionParams& params, const AttentionPlan& plan,
                         std::span<std::byte> workspace) override {
    return DecodeAttention(pool, table, params, plan, workspace);
  }

  Status MergeStates(const MergeParams& params) override {
    return NoThrow("MergeStates", [&] {
      if (Status s = ValidateMerge(params); !s.ok()) return s;
      Merge(params);
      return Status::Ok();
    });
  }

  Status CopyBlocks(const KvPoolView& pool, std::span<const CopyOrder> orders) override {
    return NoThrow("CopyBlocks", [&] {
      if (Status s = ValidateCopies(pool, orders); !s.ok()) return s;
      for (const CopyOrder& order : orders) Copy(pool, order);
      return Status::Ok();
    });
  }

  Status GatherBlocks(const KvPoolView& pool, std::span<const int32_t> ids,
                      std::span<std::byte> destination) override {
    return NoThrow("GatherBlocks", [&] {
      if (Status s = ValidateIds(pool, ids, false, destination.size()); !s.ok()) return s;
      const int64_t bytes = pool.layout.content_bytes();
      std::byte* to = destination.data();
      for (size_t i = 0; i < ids.size(); ++i, to += bytes) Gather(pool, ids[i], to);
      return Status::Ok();
    });
  }

  Status ScatterBlocks(const KvPoolView& pool, std::span<const int32_t> ids,
                       std::span<const std::byte> source) override {
    return NoThrow("ScatterBlocks", [&] {
      if (Status s = ValidateIds(pool, ids, true, source.size()); !s.ok()) return s;
      const int64_t bytes = pool.layout.content_bytes();
      const std::byte* from = source.data();
      for (size_t i = 0; i < ids.size(); ++i, from += bytes) Scatter(pool, ids[i], from);
      return Status::Ok();
    });
  }

  Status TransferBlocks(const KvPoolView& source, const KvPoolView& destination,
                        std::span<const BlockPair> pairs) override {
    return NoThrow("TransferBlocks", [&] {
      if (Status s = ValidateTransfer(source, destination, pairs); !s.ok()) return s;
      std::vector<std::byte> dense(static_cast<size_t>(source.layout.content_bytes()));
      for (const BlockPair& pair : pairs) {
        Gather(source, pair.source, dense.data());
        Scatter(destination, pair.destination, dense.data());
      }
      return Status::Ok();
    });
  }

  Status ChecksumBlocks(const KvPoolView& pool, uint64_t seed,
                        std::span<const ChecksumOrder> orders,
                        std::span<ChecksumSums> sums) override {
    return NoThrow("ChecksumBlocks", [&] {
      if (Status s = ValidateChecksums(pool, orders, sums.size()); !s.ok()) return s;
      for (size_t i = 0; i < orders.size(); ++i) sums[i] = Checksum(pool, seed, orders[i]);
      return Status::Ok();
    });
  }
};

}  // namespace

std::unique_ptr<Backend> MakeReferenceBackend() { return std::make_unique<ReferenceBackend>(); }

}  // namespace quire::kernels::ref
