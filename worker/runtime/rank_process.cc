#include "worker/runtime/rank_process.h"

#include <memory>
#include <utility>

#include "worker/client/pool_mapping.h"
#include "worker/model/linear.h"
#include "worker/model/transformer.h"
#include "worker/runtime/line_socket.h"
#include "worker/runtime/paged_pool.h"
#include "worker/runtime/rank_messages.h"
#include "worker/runtime/shared_reduce.h"

namespace quire::runtime {
namespace {

using nlohmann::json;

class Rank {
 public:
  Rank(model::Transformer& model, const model::KernelChoice& kernels)
      : model_(model), kernels_(kernels) {}

  absl::Status Do(const json& message) {
    if (message.contains("map")) return Map(ToMapOrder(message["map"]));
    if (message.contains("copies")) return ExecuteCopies(*kv_, ToCopyOrders(message["copies"]));
    if (message.contains("launch")) return Launch(ToLaunchOrder(message["launch"]));
    kv_.reset();
    mapping_.reset();
    return absl::OkStatus();
  }

  bool lease_is_good() const { return mapping_ == nullptr || mapping_->LeaseIsGood(); }

 private:
  absl::Status Map(const MapOrder& order) {
    auto mapping = client::PoolMapping::Map(order.grant);
    if (!mapping.ok()) return mapping.status();
    kv_.reset();  // before the memory that it may have page-locked
    mapping_ = *std::move(mapping);
    auto kv = MapPagedKv(order.info, mapping_->blocks(), model_.part(), kernels_);
    if (!kv.ok()) return kv.status();
    kv_ = *std::move(kv);
    return absl::OkStatus();
  }

  absl::Status Launch(const LaunchOrder& order) {
    if (absl::Status status = kv_->Prepare(order.batch, order.tables()); !status.ok()) {
      return status;
    }
    // No logits: the scheduler's process has them.
    std::vector<float> none;
    return model_.Forward(order.batch, *kv_, none);
  }

  model::Transformer& model_;
  const model::KernelChoice kernels_;
  std::unique_ptr<client::PoolMapping> mapping_;
  std::unique_ptr<model::PagedKv> kv_;
};

// The region of a server that has ended since it was granted.
bool IsLost(const absl::Status& status) {
  return client::EndsLease(status) || absl::IsNotFound(status);
}

}  // namespace

absl::Status ServeRank(const WorkerOptions& options) {
  LineSocket socket(options.rank_fd);
  auto reduce = SharedReduce::Open(options.reduce_fd, options.rank, options.client.ranks);
  if (!reduce.ok()) return reduce.status();
  (*reduce)->set_peers_alive([&socket] { return socket.HasPeer(); });
  model::SetMatrixThreads(options.kernels.threads);
  model::SeededWeights weights(options.model_seed);
  const model::Shard shard{static_cast<int32_t>(options.rank),
                           static_cast<int32_t>(options.client.ranks)};
  auto model = model::Transformer::CreateShard(options.model, weights, shard, **reduce);
  if (!model.ok()) return model.status();
  Rank rank(**model, options.kernels);
  while (const std::optional<std::string> line = socket.Receive(-1)) {
    const absl::Status status = rank.Do(json::parse(*line));
    if (!status.ok()) (*reduce)->Abort();
    socket.Send(json({{"error", status.ok() ? "" : status.ToString()},
                      {"lease", rank.lease_is_good() && !IsLost(status)}})
                    .dump());
  }
  return absl::OkStatus();
}

}  // namespace quire::runtime
