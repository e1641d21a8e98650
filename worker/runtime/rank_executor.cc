#include "worker/runtime/rank_executor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/model/linear.h"
#include "worker/runtime/rank_messages.h"

namespace quire::runtime {
namespace {

absl::Status Lost(const std::string& why) {
  return ToStatus(MakeError(Reason::kLeaseExpired, why));
}

// A new process makes its part of the model first.
constexpr Duration kToStart = std::chrono::minutes(5);
// One that hangs, or has something left to answer, is killed after this.
constexpr Duration kToUnmap = std::chrono::seconds(1);

// In short waits, so that time in which this process itself is stopped does not count.
std::optional<std::string> Await(LineSocket& socket, Duration patience) {
  constexpr std::chrono::milliseconds kWait(20);
  std::optional<std::string> line;
  for (Duration waited{}; waited < patience && !line && !socket.closed(); waited += kWait) {
    line = socket.Receive(static_cast<int>(kWait.count()));
  }
  return line;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RankExecutor>> RankExecutor::Create(const WorkerOptions& options,
                                                                   char** argv) {
  std::unique_ptr<RankExecutor> executor(
      new RankExecutor(options.client.ranks, options.rank_timeout, argv));
  auto reduce = SharedReduce::Create(options.client.ranks);
  if (!reduce.ok()) return reduce.status();
  executor->reduce_ = *std::move(reduce);
  executor->reduce_->set_patience(options.rank_timeout);
  executor->reduce_->set_peers_alive([raw = executor.get()] { return raw->AllPeersAlive(); });
  model::SetMatrixThreads(options.kernels.threads);
  model::SeededWeights weights(options.model_seed);
  auto model = model::Transformer::CreateShard(
      options.model, weights, {0, static_cast<int32_t>(options.client.ranks)}, *executor->reduce_);
  if (!model.ok()) return model.status();
  executor->model_ = *std::move(model);
  executor->own_.emplace(*executor->model_, options.kernels);
  return executor;
}

RankExecutor::~RankExecutor() = default;

absl::Status RankExecutor::StartPeers() {
  reduce_->Reset();
  for (uint32_t rank = 1; rank < ranks_; ++rank) {
    auto started = ChildProcess::Start(argv_, [&](int socket) {
      return std::vector<std::string>{absl::StrCat("--rank=", rank),
                                      absl::StrCat("--rank_fd=", socket),
                                      absl::StrCat("--reduce_fd=", reduce_->fd())};
    });
    if (!started.ok()) return started.status();
    peers_.push_back(std::make_unique<Peer>(*std::move(started), patience_));
  }
  return absl::OkStatus();
}

void RankExecutor::KillPeers() {
  for (const auto& peer : peers_) peer->process.Kill();
  peers_.clear();
}

bool RankExecutor::AllPeersAlive() const {
  return std::all_of(peers_.begin(), peers_.end(),
                     [](const auto& peer) { return peer->socket.HasPeer(); });
}

void RankExecutor::SendToAll(const std::string& line) {
  for (const auto& peer : peers_) peer->socket.Send(line);
}

absl::Status RankExecutor::AwaitAll(Duration patience) {
  absl::Status status;
  for (size_t i = 0; i < peers_.size(); ++i) {
    const std::optional<std::string> line = Await(peers_[i]->socket, patience);
    if (!line.has_value()) {
      const bool gone = peers_[i]->socket.closed();
      status.Update(Lost(absl::StrCat("rank ", i + 1, gone ? " is gone" : " does not answer")));
      continue;
    }
    const nlohmann::json marker = nlohmann::json::parse(*line);
    const auto error = marker["error"].get<std::string>();
    if (!marker["lease"].get<bool>()) {
      status.Update(Lost(absl::StrCat("rank ", i + 1, " lost its lease ", error)));
    } else if (!error.empty()) {
      status.Update(absl::InternalError(absl::StrCat("rank ", i + 1, ": ", error)));
    }
  }
  return status;
}

absl::Status RankExecutor::Map(const client::CacheClient& client) {
  if (client.pool().regions.size() != ranks_) {
    return absl::FailedPreconditionError(absl::StrCat("the pool has ", client.pool().regions.size(),
                                                      " regions for ", ranks_,
                                                      " ranks; the server needs --ranks=", ranks_));
  }
  if (peers_.empty()) {
    if (absl::Status status = StartPeers(); !status.ok()) return status;
  }
  if (absl::Status status = own_->Map(client); !status.ok()) return status;
  for (const client::RegionGrant& grant : client.pool().regions) {
    if (grant.rank == 0) continue;
    peers_[grant.rank - 1]->socket.Send(MapMessage(client.pool(), grant).dump());
  }
  return AwaitAll(kToStart);
}

void RankExecutor::Unmap() {
  own_->Unmap();
  SendToAll(R"({"unmap": true})");
  // One that cannot answer must not keep its mapping either; sums begin anew with all of them.
  if (!AwaitAll(kToUnmap).ok()) KillPeers();
}

absl::Status RankExecutor::Copy(std::span<const client::CopyOrder> orders) {
  SendToAll(CopyMessage(orders).dump());
  absl::Status status = own_->Copy(orders);
  status.Update(AwaitAll(patience_));
  return status;
}

absl::Status RankExecutor::Launch(const model::LaunchBatch& batch,
                                  std::span<const model::SequenceTables> tables,
                                  std::vector<float>& logits) {
  SendToAll(LaunchMessage(batch, tables).dump());
  const absl::Status own = own_->Launch(batch, tables, logits);
  if (!own.ok()) reduce_->Abort();
  // A rank that is gone is the cause of our failure, not its consequence.
  const absl::Status others = AwaitAll(own.ok() ? patience_ : kToUnmap);
  if (client::EndsLease(others) || own.ok()) return others;
  return own;
}

}  // namespace quire::runtime
