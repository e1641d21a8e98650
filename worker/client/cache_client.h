// A worker's connection to a Quire server.
//
//   ClientOptions options{.server = "unix:/run/quire.sock", .worker = "w0",
//                         .model_fingerprint = "llama-8b@1", .layout = layout};
//   auto client = CacheClient::Attach(options);
//   (*client)->set_copy_executor([&](std::span<const CopyOrder> orders) { return Copy(orders); });
//
//   Step step;
//   step.Begin({.sequence = 1, .tokens = prompt});
//   (*client)->Submit(std::move(step));           // returns at once in stream mode
//   auto applied = (*client)->Wait();             // tables updated, copies executed
//   const SequenceState* s = (*client)->tables().Find(1);   // block table for the kernels
//   ... if ((*client)->MayLaunch()) launch; then (*client)->CheckLease() before using results ...
//   (*client)->Complete(applied->answer.step);    // all launched before that step was sent is done
//
// Ownership: the client owns connection, lease, mapping and tables. Nothing that uses blocks() may
// run when it is destroyed or attached again.
//
// Threads: one thread at a time uses a client. Reading ahead and lease renewal happen on threads of
// its own and touch nothing that is visible here.
//
// Errors: failures of operations are in StepAnswer::failures. A Status from a call here is about
// the whole: with a reason (HasReason, quire::ReasonOf) it is the server's, otherwise it comes from
// the transport. Broken streams, lost answers, slow servers and begins refused by one that drains
// are waited out, up to retry_budget. After an error from Submit, Poll, Wait or CheckLease the
// sequences are gone as far as this worker is concerned: call Reattach and begin again. Nothing
// here throws or aborts.
#ifndef QUIRE_WORKER_CLIENT_CACHE_CLIENT_H_
#define QUIRE_WORKER_CLIENT_CACHE_CLIENT_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cache_service/base/clock.h"
#include "worker/client/answer.h"
#include "worker/client/attachment.h"
#include "worker/client/block_tables.h"
#include "worker/client/client_options.h"
#include "worker/client/server_wait.h"
#include "worker/client/step.h"

namespace quire::client {

class Connection;
class LeaseKeeper;
class StepLedger;
class StepTransport;
struct LedgerEntry;

// A step whose answer has been applied.
struct AppliedStep {
  Step step;
  StepAnswer answer;
};

class CacheClient {
 public:
  // Executes copy orders as if one after another, before it returns or in the order of launches.
  using CopyExecutor = std::function<absl::Status(std::span<const CopyOrder>)>;

  // Attaches, checks and maps the memory, and starts renewing the lease. `connection` and `clock`
  // stand in for the server and the system clock in tests.
  static absl::StatusOr<std::unique_ptr<CacheClient>> Attach(
      const ClientOptions& options, std::shared_ptr<Connection> connection = nullptr,
      const Clock* clock = nullptr);

  // Detaches if that has not happened.
  ~CacheClient();
  CacheClient(const CacheClient&) = delete;
  CacheClient& operator=(const CacheClient&) = delete;

  // Called while an answer with copy orders is applied. Without one such an answer is an error.
  void set_copy_executor(CopyExecutor executor) { copy_executor_ = std::move(executor); }

  const PoolInfo& pool() const { return info_; }

  // First byte of block 0; null if this worker maps no memory. Changes with Reattach.
  std::byte* blocks() const;

  // As of the last applied answer.
  const BlockTables& tables() const { return tables_; }

  // True if a step can be sent without waiting for an answer.
  bool CanSubmit() const;
  size_t in_flight() const;

  // True if Submit returns only with the answer: every mode but streams.
  bool submit_waits() const { return options_.mode != StepMode::kStream; }

  // Numbers and sends a step. In stream mode it returns at once unless max_steps_in_flight steps
  // are unanswered, which is FAILED_PRECONDITION; otherwise when the answer is there.
  // INVALID_ARGUMENT, without any effect, for more operations than the server takes or a fork that
  // the tables could not follow (see Step::Fork).
  absl::StatusOr<StepNumber> Submit(Step step);

  // Applies the next answer if it has arrived.
  absl::StatusOr<std::optional<AppliedStep>> Poll();
  // Waits for the next answer and applies it. FAILED_PRECONDITION if no step is in flight.
  absl::StatusOr<AppliedStep> Wait();

  // States that all copies and kernels launched before `step` was sent have finished and none will
  // use older tables. Rides on the next step; see ReportCompletion.
  absl::Status Complete(StepNumber step);
  // When idle: sends an empty step if the server does not know yet what is complete. True if one
  // was sent.
  absl::StatusOr<bool> ReportCompletion();

  // False while the last renewal is too old to start device work.
  bool MayLaunch() const;
  // LEASE_EXPIRED if the lease ended, also behind this worker's back: throw away what was computed
  // since the last check. To be called after each launch, before its results are used.
  absl::Status CheckLease();

  // Drops all sequences, unmaps, and attaches as a new incarnation (waiting for a server that is
  // starting again). Steps in flight are forgotten. `cause` is what people are told, unless the
  // client itself saw the lease end.
  absl::Status Reattach(const absl::Status& cause = absl::OkStatus());

  // Ends the sequences and unmaps. The client is of no further use.
  absl::Status Detach();

  // The server's view of tables, for debugging. At most 1,024 sequences.
  absl::StatusOr<std::vector<SequenceState>> FetchTables(std::span<const SequenceHandle> sequences);
  // Tokens of a prompt that a begin would not have to compute now.
  absl::StatusOr<uint32_t> PeekPrefix(std::span<const TokenId> tokens, const Namespace& name_space);

 private:
  CacheClient(const ClientOptions& options, std::shared_ptr<Connection> connection,
              const Clock& clock);

  absl::Status Start(uint64_t incarnation);
  absl::StatusOr<Duration> Renew(const std::string& lease, uint64_t epoch);
  void OpenTransport();
  // Stamps a ledger entry with the counters of now and sends it.
  bool SendEntry(LedgerEntry& entry);
  // Waits up to `wait` for a reply of the oldest step; nullopt: none yet.
  absl::StatusOr<std::optional<AppliedStep>> Receive(Duration wait);
  absl::StatusOr<AppliedStep> Apply(const StepAnswer& answer);
  absl::Status NoteProgress(const StepAnswer& answer);
  // Opens a new transport and sends again what is unanswered.
  absl::Status Recover(const absl::Status& cause);
  absl::Status Fail(const absl::Status& status);

  const ClientOptions options_;
  const std::shared_ptr<Connection> connection_;
  const Clock& clock_;
  ServerWait wait_;
  uint64_t incarnation_;
  PoolInfo info_;
  CopyExecutor copy_executor_;

  std::unique_ptr<PoolMapping> mapping_;
  BlockTables tables_;
  std::unique_ptr<StepLedger> ledger_;
  std::unique_ptr<LeaseKeeper> keeper_;
  std::unique_ptr<StepTransport> transport_;

  // Once set, every call but Reattach and Detach returns it.
  absl::Status failed_;
  bool attached_ = false;
  StepNumber last_with_operations_ = 0;
  // What the server was last told; read by the renewal thread.
  std::atomic<StepNumber> told_applied_{0};
  std::atomic<StepNumber> told_completed_{0};
};

}  // namespace quire::client

#endif  // QUIRE_WORKER_CLIENT_CACHE_CLIENT_H_
