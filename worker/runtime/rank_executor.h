// A model whose heads are shared out to several processes, of which this is the first.
#ifndef QUIRE_WORKER_RUNTIME_RANK_EXECUTOR_H_
#define QUIRE_WORKER_RUNTIME_RANK_EXECUTOR_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker/model/transformer.h"
#include "worker/runtime/child_process.h"
#include "worker/runtime/executor.h"
#include "worker/runtime/flags.h"
#include "worker/runtime/line_socket.h"
#include "worker/runtime/local_executor.h"
#include "worker/runtime/shared_reduce.h"

namespace quire::runtime {

// Sends tables and copy orders to every rank and returns when every rank has answered. Processes
// that die, or let the others wait for `rank_timeout`, are replaced by Map.
class RankExecutor final : public Executor {
 public:
  // `argv` starts the other processes.
  static absl::StatusOr<std::unique_ptr<RankExecutor>> Create(const WorkerOptions& options,
                                                              char** argv);
  ~RankExecutor() override;

  const model::ModelConfig& config() const override { return model_->config(); }

  absl::Status Map(const client::CacheClient& client) override;
  void Unmap() override;
  absl::Status Copy(std::span<const client::CopyOrder> orders) override;
  absl::Status Launch(const model::LaunchBatch& batch,
                      std::span<const model::SequenceTables> tables,
                      std::vector<float>& logits) override;

 private:
  // The process of another rank, and our end of the line to it.
  struct Peer {
    Peer(ChildProcess started, Duration patience)
        : process(std::move(started)), socket(process.TakeSocket()) {
      socket.LimitSends(static_cast<int>(patience / std::chrono::seconds(1)));
    }

    ChildProcess process;
    LineSocket socket;
  };

  RankExecutor(uint32_t ranks, Duration patience, char** argv)
      : ranks_(ranks), patience_(patience), argv_(argv) {}

  absl::Status StartPeers();
  void KillPeers();
  bool AllPeersAlive() const;
  void SendToAll(const std::string& line);
  // One marker of each rank; LEASE_EXPIRED if a rank is gone, lets us wait, or was told so by its
  // lease word.
  absl::Status AwaitAll(Duration patience);

  const uint32_t ranks_;
  const Duration patience_;
  char** const argv_;
  std::unique_ptr<SharedReduce> reduce_;
  std::unique_ptr<model::Transformer> model_;
  std::optional<LocalExecutor> own_;
  std::vector<std::unique_ptr<Peer>> peers_;
};

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_RANK_EXECUTOR_H_
