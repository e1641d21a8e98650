#include "worker/client/cache_client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/client/connection.h"
#include "worker/client/lease_keeper.h"
#include "worker/client/proto_convert.h"
#include "worker/client/step_ledger.h"
#include "worker/client/step_transport.h"

namespace quire::client {
namespace {

// A wait for an answer looks so often whether it should end.
constexpr Duration kLook = std::chrono::milliseconds(100);

const SystemClock& RealClock() {
  static const SystemClock clock;
  return clock;
}

uint64_t WallClockIncarnation() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                   std::chrono::system_clock::now().time_since_epoch())
                                   .count());
}

// The parent of a fork may only be finished later in the same step.
absl::Status CheckForks(const Step& step) {
  std::vector<SequenceHandle> parents;
  const auto refuse_if_parent = [&parents](SequenceHandle sequence) {
    if (std::find(parents.begin(), parents.end(), sequence) == parents.end()) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(
        absl::StrCat("sequence ", sequence, " is forked and then changed in one step"));
  };
  for (const Operation& operation : step.operations()) {
    absl::Status status;
    if (const auto* fork = std::get_if<ForkParams>(&operation)) {
      parents.push_back(fork->sequence);
    } else if (const auto* advance = std::get_if<AdvanceColumns>(&operation)) {
      for (const SequenceHandle sequence : advance->sequences) {
        status.Update(refuse_if_parent(sequence));
      }
    } else if (const auto* extend = std::get_if<ExtendParams>(&operation)) {
      status = refuse_if_parent(extend->sequence);
    } else if (const auto* truncate = std::get_if<TruncateParams>(&operation)) {
      status = refuse_if_parent(truncate->sequence);
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

CacheClient::CacheClient(const ClientOptions& options, std::shared_ptr<Connection> connection,
                         const Clock& clock)
    : options_(options),
      connection_(std::move(connection)),
      clock_(clock),
      wait_(options.retry_budget, options.on_server_notice, clock, options.stop),
      incarnation_(options.incarnation == 0 ? WallClockIncarnation() : options.incarnation) {}

absl::StatusOr<std::unique_ptr<CacheClient>> CacheClient::Attach(
    const ClientOptions& options, std::shared_ptr<Connection> connection, const Clock* clock) {
  if (connection == nullptr) connection = ConnectGrpc(options.server, options.token);
  std::unique_ptr<CacheClient> client(
      new CacheClient(options, std::move(connection), clock == nullptr ? RealClock() : *clock));
  if (absl::Status status = client->Start(client->incarnation_); !status.ok()) return status;
  return client;
}

absl::Status CacheClient::Start(uint64_t incarnation) {
  absl::StatusOr<Attachment> attached =
      AttachWorker(*connection_, options_, incarnation, clock_, wait_);
  if (!attached.ok()) return attached.status();
  wait_.Attached(failed_);
  info_ = std::move(attached->info);
  mapping_ = std::move(attached->mapping);
  attached_ = true;
  failed_ = absl::OkStatus();
  last_with_operations_ = 0;
  told_applied_ = told_completed_ = info_.expected_step - 1;
  tables_ = BlockTables({.block_tokens = info_.block_tokens,
                         .groups = static_cast<uint32_t>(info_.groups.size()),
                         .max_sequence_tokens = info_.max_sequence_tokens,
                         .block_count = info_.block_count});
  const uint32_t in_flight = options_.mode == StepMode::kStream ? info_.max_steps_in_flight : 1;
  ledger_ = std::make_unique<StepLedger>(info_.expected_step, in_flight);
  keeper_ = std::make_unique<LeaseKeeper>(
      LeaseKeeper::Options{.lease = info_.lease_duration,
                           .margin = std::min(options_.lease_margin, info_.lease_duration / 3),
                           .interval = info_.lease_duration / 4},
      clock_, attached->attached_at,
      [this, lease = info_.lease_id, epoch = info_.epoch] { return Renew(lease, epoch); });
  OpenTransport();
  return absl::OkStatus();
}

absl::StatusOr<Duration> CacheClient::Renew(const std::string& lease, uint64_t epoch) {
  v1::RenewLeaseRequest request;
  request.set_lease_id(lease);
  request.set_epoch(epoch);
  request.set_applied_step(told_applied_);
  request.set_completed_step(told_completed_);
  absl::StatusOr<v1::RenewLeaseResponse> response =
      connection_->Renew(request, options_.call_timeout);
  if (!response.ok()) return response.status();
  return std::chrono::seconds(response->lease_duration().seconds()) +
         std::chrono::nanoseconds(response->lease_duration().nanos());
}

void CacheClient::OpenTransport() {
  transport_.reset();
  transport_ = options_.mode == StepMode::kStream ? OpenStream(*connection_)
                                                  : OpenUnary(*connection_, options_.step_timeout);
}

CacheClient::~CacheClient() { Detach().IgnoreError(); }

std::byte* CacheClient::blocks() const {
  return mapping_ == nullptr ? nullptr : mapping_->blocks();
}

bool CacheClient::CanSubmit() const { return failed_.ok() && !ledger_->full(); }

size_t CacheClient::in_flight() const { return ledger_->in_flight(); }

absl::StatusOr<StepNumber> CacheClient::Submit(Step step) {
  if (!failed_.ok()) return failed_;
  if (ledger_->full()) return absl::FailedPreconditionError("too many steps are unanswered");
  if (step.operation_count() > info_.max_operations_per_step) {
    return absl::InvalidArgumentError(absl::StrCat(step.operation_count(), " operations, at most ",
                                                   info_.max_operations_per_step));
  }
  if (absl::Status status = CheckForks(step); !status.ok()) return status;
  const bool has_operations = !step.empty();
  LedgerEntry& entry = ledger_->Add(std::move(step));
  entry.batch.set_lease_id(info_.lease_id);
  entry.batch.set_epoch(info_.epoch);
  const StepNumber number = entry.batch.step();
  if (has_operations) last_with_operations_ = number;
  if (!SendEntry(entry)) {
    if (absl::Status status = Recover(transport_->status()); !status.ok()) return status;
  }
  return number;
}

bool CacheClient::SendEntry(LedgerEntry& entry) {
  ledger_->Stamp(entry.batch);
  entry.sent_at = clock_.Now();
  told_applied_ = ledger_->applied();
  told_completed_ = ledger_->completed();
  return transport_->Send(entry.batch);
}

absl::StatusOr<std::optional<AppliedStep>> CacheClient::Poll() {
  if (!failed_.ok()) return failed_;
  if (ledger_->idle()) return std::nullopt;
  return Receive(Duration::zero());
}

absl::StatusOr<AppliedStep> CacheClient::Wait() {
  if (!failed_.ok()) return failed_;
  if (ledger_->idle()) return absl::FailedPreconditionError("no step is in flight");
  TimePoint start = clock_.Now();
  for (;;) {
    absl::StatusOr<std::optional<AppliedStep>> applied =
        Receive(std::min(options_.step_timeout, kLook));
    if (!applied.ok()) return applied.status();
    if (applied->has_value()) return **std::move(applied);
    const absl::Status late = absl::DeadlineExceededError(
        absl::StrCat("no answer to step ", ledger_->front().batch.step()));
    if (absl::Status over = wait_.CheckStop(late); !over.ok()) return Fail(over);
    // Nothing yet may also mean that the steps were just sent again.
    if (clock_.Now() - start < options_.step_timeout) continue;
    start = clock_.Now();
    if (absl::Status status = Recover(late); !status.ok()) return status;
  }
}

absl::StatusOr<std::optional<AppliedStep>> CacheClient::Receive(Duration wait) {
  StepReply reply;
  switch (transport_->Next(reply, wait)) {
    case StepTransport::Event::kTimeout:
      return std::nullopt;
    case StepTransport::Event::kBroken:
      if (absl::Status status = Recover(transport_->status()); !status.ok()) return status;
      return std::nullopt;
    case StepTransport::Event::kReply:
      break;
  }
  const StepNumber expected = ledger_->front().batch.step();
  if (!reply.refusal.ok()) {
    const Reason reason = ReasonOf(reply.refusal);
    const bool again = reason == Reason::kStepOutOfOrder || reason == Reason::kDraining;
    if (!again) return Fail(reply.refusal);
    if (absl::Status status = Recover(reply.refusal); !status.ok()) return status;
    return std::nullopt;
  }
  if (reply.step < expected) return std::nullopt;
  if (reply.step > expected) {
    return Fail(absl::InternalError(
        absl::StrCat("answer to step ", reply.step, " before that to step ", expected)));
  }
  absl::StatusOr<AppliedStep> applied = Apply(FromProto(reply.answer));
  if (!applied.ok()) return Fail(applied.status());
  return std::optional<AppliedStep>(*std::move(applied));
}

absl::StatusOr<AppliedStep> CacheClient::Apply(const StepAnswer& answer) {
  AppliedStep applied{.step = std::move(ledger_->front().step), .answer = answer};
  if (absl::Status status = tables_.Apply(applied.step, answer); !status.ok()) return status;
  if (!answer.copies.empty()) {
    if (copy_executor_ == nullptr) return absl::FailedPreconditionError("no copy executor is set");
    if (absl::Status status = copy_executor_(answer.copies); !status.ok()) return status;
  }
  keeper_->Renewed(ledger_->front().sent_at);
  ledger_->Applied();
  if (absl::Status status = NoteProgress(answer); !status.ok()) return status;
  return applied;
}

absl::Status CacheClient::NoteProgress(const StepAnswer& answer) {
  for (const OperationFailure& failure : answer.failures) {
    if (failure.error.reason == Reason::kDraining) return wait_.Failed(ToStatus(failure.error));
  }
  wait_.Answered();
  return absl::OkStatus();
}

absl::Status CacheClient::Recover(const absl::Status& cause) {
  absl::Status why = cause;
  for (;;) {
    if (EndsLease(why)) return Fail(why);
    if (absl::Status lost = keeper_->lost(); !lost.ok()) return Fail(lost);
    if (absl::Status over = wait_.Failed(why); !over.ok()) return Fail(over);
    connection_->WaitForServer(wait_.pause());
    OpenTransport();
    bool sent = true;
    for (LedgerEntry& entry : ledger_->unanswered()) sent = sent && SendEntry(entry);
    if (sent) return absl::OkStatus();
    why = transport_->status();
  }
}

absl::Status CacheClient::Fail(const absl::Status& status) {
  failed_ = status;
  return status;
}

absl::Status CacheClient::Complete(StepNumber step) { return ledger_->Complete(step); }

absl::StatusOr<bool> CacheClient::ReportCompletion() {
  if (!failed_.ok()) return failed_;
  const bool known = told_completed_ >= last_with_operations_;
  if (known || !ledger_->idle() || ledger_->completed() < last_with_operations_) return false;
  absl::StatusOr<StepNumber> sent = Submit(Step());
  if (!sent.ok()) return sent.status();
  return true;
}

bool CacheClient::MayLaunch() const { return failed_.ok() && keeper_->MayLaunch(); }

absl::Status CacheClient::CheckLease() {
  if (!failed_.ok()) return failed_;
  if (absl::Status lost = keeper_->lost(); !lost.ok()) return Fail(lost);
  if (mapping_ != nullptr && !mapping_->LeaseIsGood()) {
    return Fail(ToStatus(MakeError(Reason::kLeaseExpired, "the lease word reads revoked")));
  }
  return absl::OkStatus();
}

absl::Status CacheClient::Reattach(const absl::Status& cause) {
  failed_.Update(cause);
  keeper_.reset();
  transport_.reset();
  tables_.Clear();
  mapping_.reset();
  attached_ = false;
  absl::Status status = Start(++incarnation_);
  return status.ok() ? status : Fail(status);
}

absl::Status CacheClient::Detach() {
  keeper_.reset();
  transport_.reset();
  mapping_.reset();
  if (!std::exchange(attached_, false)) return absl::OkStatus();
  v1::DetachWorkerRequest request;
  request.set_lease_id(info_.lease_id);
  request.set_epoch(info_.epoch);
  request.set_completed_step(ledger_->completed());
  // A server that did not answer before is not waited for again.
  const bool answers = failed_.ok() || HasReason(failed_);
  failed_ = absl::FailedPreconditionError("the client is detached");
  return connection_->Detach(request, answers ? options_.call_timeout : kLook);
}

}  // namespace quire::client
