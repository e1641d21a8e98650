#include "kernels/ref/reference.h"

#include <vector>

namespace quire::kernels::ref {
namespace {

class ReferenceBackend final : public Backend {
 public:
  std::string_view name() const override { return "reference"; }

 private:
  int Parts(const KvPoolView&) const override { return 1; }

  Status DoWrite(const KvPoolView& pool, const KvRows& rows, const TokenTargets& targets,
                 int64_t* nan_inputs) override {
    const int64_t nans = Write(pool, rows, targets);
    if (nan_inputs != nullptr) *nan_inputs = nans;
    return Status::Ok();
  }

  Status DoAttention(const KvPoolView& pool, const BlockTableView& table,
                     const AttentionParams& params, const AttentionPlan&,
                     std::span<std::byte>) override {
    Attention(pool, table, params);
    return Status::Ok();
  }

  Status DoMerge(const MergeParams& params) override {
    Merge(params);
    return Status::Ok();
  }

  Status DoCopy(const KvPoolView& pool, std::span<const CopyOrder> orders) override {
    for (const CopyOrder& order : orders) Copy(pool, order);
    return Status::Ok();
  }

  Status DoGather(const KvPoolView& pool, std::span<const int32_t> ids,
                  std::span<std::byte> destination) override {
    std::byte* to = destination.data();
    for (const int32_t id : ids) {
      Gather(pool, id, to);
      to += pool.layout.content_bytes();
    }
    return Status::Ok();
  }

  Status DoScatter(const KvPoolView& pool, std::span<const int32_t> ids,
                   std::span<const std::byte> source) override {
    const std::byte* from = source.data();
    for (const int32_t id : ids) {
      Scatter(pool, id, from);
      from += pool.layout.content_bytes();
    }
    return Status::Ok();
  }

  Status DoTransfer(const KvPoolView& source, const KvPoolView& destination,
                    std::span<const BlockPair> pairs) override {
    std::vector<std::byte> dense(static_cast<size_t>(source.layout.content_bytes()));
    for (const BlockPair& pair : pairs) {
      Gather(source, pair.source, dense.data());
      Scatter(destination, pair.destination, dense.data());
    }
    return Status::Ok();
  }

  Status DoChecksum(const KvPoolView& pool, uint64_t seed, std::span<const ChecksumOrder> orders,
                    std::span<ChecksumSums> sums) override {
    for (size_t i = 0; i < orders.size(); ++i) sums[i] = Checksum(pool, seed, orders[i]);
    return Status::Ok();
  }
};

}  // namespace

std::unique_ptr<Backend> MakeReferenceBackend() { return std::make_unique<ReferenceBackend>(); }

}  // namespace quire::kernels::ref
