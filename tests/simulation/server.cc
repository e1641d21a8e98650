#include "tests/simulation/server.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tests/support/step_maker.h"

namespace quire::simulation {
namespace {

constexpr size_t kAnswersKept = 16;
// One in so many steps carries the server's tables for comparison.
constexpr uint32_t kCompareTables = 16;

uint64_t CountOf(const StepContent& content) {
  uint64_t count = 0;
  for (const Operation& operation : content.operations) {
    const auto* advance = std::get_if<AdvanceOp>(&operation);
    count += advance != nullptr ? advance->sequences.size() : 1;
  }
  return count;
}

void SetError(const absl::Status& status, Reply& reply) {
  const Error error = FromStatus(status);
  reply.reason = error.reason;
  reply.message = error.message;
  const std::string_view expected = error.Detail("expected_step");
  if (!expected.empty()) reply.expected_step = std::stoull(std::string(expected));
}

}  // namespace

Server::Server(Shared& shared)
    : shared_(shared),
      plan_(shared.plan),
      network_(shared.network),
      judge_(shared.judge),
      clock_(shared.judge) {
  Start();
}

void Server::Start() {
  EngineOptions options = plan_.engine;
  options.epoch = ++epoch_;
  memory_ = std::make_shared<PoolMemory>(options, plan_.ranks);
  memory_->Misread(plan_.misread, &shared_.random);
  const EngineSeams seams{memory_.get(), memory_.get(),
                          plan_.content_checks ? memory_.get() : nullptr};
  auto created = CacheEngine::Create(options, clock_, seams);
  if (!created.ok()) {
    judge_.Violate("the engine refuses its options: ", created.status().message());
    return;
  }
  engine_ = *std::move(created);
  served_.clear();
  ends_at_ = ~Tick{0};
  mismatches_ = 0;
  next_maintenance_ = clock_.Now();
  judge_.Trace("server starts, epoch ", epoch_);
}

void Server::Pause(Tick until) {
  judge_.Trace("server pauses until ", until);
  paused_until_ = until;
}

void Server::Kill(Tick now, Tick restart) {
  judge_.Trace("server is killed");
  engine_.reset();
  memory_->Unlink();
  restart_at_ = restart;
  network_.ServerGone(now);
}

void Server::Drain(Tick until) {
  judge_.Trace("server drains until ", until);
  engine_->StartDraining();
  ends_at_ = std::min(ends_at_, until);
}

void Server::Run(Tick now) {
  if (engine_ != nullptr && now >= ends_at_) Kill(now, now + shared_.random.Below(40));
  if (engine_ == nullptr) {
    // Nobody listens.
    while (network_.NextRequest(now) != nullptr) {
    }
    if (now < restart_at_) return;
    Start();
  }
  if (paused(now)) return;
  while (const std::shared_ptr<const Request> request = network_.NextRequest(now)) {
    if (now <= request->deadline) Handle(*request, now);
  }
  if (engine_ != nullptr && clock_.Now() >= next_maintenance_) {
    next_maintenance_ = engine_->RunMaintenance();
    NoteRemovals();
  }
}

// Content that was taken for bad is gone.
void Server::NoteRemovals() {
  if (plan_.misread == 0) return;
  const uint64_t mismatches = engine_->Stats().counters.content_mismatches;
  if (mismatches != mismatches_) ++shared_.removals;
  mismatches_ = mismatches;
}

void Server::Handle(const Request& request, Tick now) {
  Reply reply{.call = request.call,
              .process = request.process,
              .stream = request.stream,
              .sent_at = request.sent_at,
              .lease = request.lease,
              .step = request.step};
  switch (request.call) {
    case Call::kStreamEnd:
      EndStream(request.stream);
      return;
    case Call::kAttach:
      Attach(request, reply);
      break;
    case Call::kRenew: {
      judge_.Trace("server: ", served_[request.lease].worker, " renews, applied ",
                   request.applied_step, ", completed ", request.completed_step);
      const auto renewed = engine_->Renew(
          {request.lease, request.epoch, request.applied_step, request.completed_step});
      if (!renewed.ok()) SetError(renewed.status(), reply);
      break;
    }
    case Call::kDetach: {
      const absl::Status status =
          engine_->Detach(request.lease, request.epoch, request.completed_step);
      if (!status.ok()) SetError(status, reply);
      break;
    }
    case Call::kStep: {
      const auto served = served_.find(request.lease);
      // A newer stream has ended this one.
      if (request.stream != 0 && served != served_.end() &&
          request.stream < served->second.stream) {
        return;
      }
      Step(request, reply);
      break;
    }
  }
  network_.Answer(std::move(reply), now);
}

void Server::Attach(const Request& request, Reply& reply) {
  const auto attached = engine_->Attach(request.attach);
  if (!attached.ok()) {
    SetError(attached.status(), reply);
    return;
  }
  reply.attach = *attached;
  reply.memory = memory_;
  served_[attached->lease].worker = request.attach.worker;
}

void Server::Step(const Request& request, Reply& reply) {
  StepParams params;
  params.lease = request.lease;
  params.epoch = request.epoch;
  params.step = request.step;
  params.applied_step = request.applied_step;
  params.completed_step = request.completed_step;
  params.all_or_nothing = request.content->all_or_nothing;
  params.operations = request.content->operations;
  TraceStep(request);
  auto answer = engine_->Step(params);
  TraceAnswer(answer);
  if (answer.ok()) {
    reply.answer = *std::move(answer);
    Accepted(request, reply);
  } else {
    SetError(answer.status(), reply);
  }
  const bool known = reply.reason == Reason::kNone || reply.reason == Reason::kStepOutOfOrder;
  if (request.stream != 0 && known) served_[request.lease].stream = request.stream;
}

void Server::TraceStep(const Request& request) {
  if (!judge_.traces()) return;
  judge_.Trace("server: ", served_[request.lease].worker, " step ", request.step, ", applied ",
               request.applied_step, ", completed ", request.completed_step,
               request.content->all_or_nothing ? ", all or nothing" : "");
  for (const Operation& operation : request.content->operations) {
    judge_.Trace("  ", testing::Describe(operation));
  }
}

void Server::TraceAnswer(const absl::StatusOr<std::shared_ptr<const StepResult>>& answer) {
  if (!judge_.traces()) return;
  if (!answer.ok()) {
    judge_.Trace("  -> ", answer.status().message());
    return;
  }
  for (const TableRun& run : (*answer)->runs) {
    std::string blocks;
    for (uint32_t i = 0; i < run.count; ++i) {
      absl::StrAppend(&blocks, " ", static_cast<int32_t>((*answer)->blocks[run.first_block + i]));
    }
    judge_.Trace("  -> ", run.sequence, " group ", run.group, "[", run.first_index, "] =", blocks);
  }
  for (const CopyOrder& copy : (*answer)->copies) {
    judge_.Trace("  -> copy ", Index(copy.source), " to ", Index(copy.destination), ", ",
                 copy.tokens, " tokens");
  }
  for (const OperationFailure& failure : (*answer)->failures) {
    judge_.Trace("  -> operation ", failure.operation, ".", failure.entry,
                 " fails: ", failure.error.message);
  }
}

void Server::Accepted(const Request& request, Reply& reply) {
  Served& served = served_[request.lease];
  if (request.step <= served.last_step) {
    CheckRepeat(served, *reply.answer);
  } else {
    served.last_step = request.step;
    operations_ += CountOf(*request.content);
    served.answers.push_back(reply.answer);
    if (served.answers.size() > kAnswersKept) served.answers.pop_front();
    if (shared_.random.OneIn(kCompareTables)) AddTables(request, served, reply);
    if (request.probe) Probe(request, served);
  }
}

void Server::CheckRepeat(const Served& served, const StepResult& answer) {
  for (const std::shared_ptr<const StepResult>& before : served.answers) {
    if (before->step != answer.step) continue;
    if (*before != answer) judge_.Violate("the answer of step ", answer.step, " changed (P2)");
    return;
  }
}

// What a hit of so many tokens needs.
bool Server::HoldsWindowBehind(const SequenceView& holder, size_t tokens) const {
  const uint32_t block_tokens = plan_.engine.block_tokens;
  for (size_t group = 0; group < holder.groups.size(); ++group) {
    const std::vector<BlockId>& blocks = holder.groups[group].blocks;
    const uint32_t first = FirstNeededBlock(plan_.engine.groups[group].window_tokens,
                                            static_cast<uint32_t>(tokens), block_tokens);
    for (size_t i = first; i < tokens / block_tokens; ++i) {
      if (i >= blocks.size() || blocks[i] == kNoBlock) return false;
    }
  }
  return true;
}

// The answer to a completion report means that what the step sealed is public (P5).
void Server::Probe(const Request& request, const Served& served) {
  const PublicProbe& probe = *request.probe;
  if (probe.removals != shared_.removals) return;
  const auto holder = engine_->GetSequence(served.worker, probe.holder);
  if (!holder.ok() || !HoldsWindowBehind(*holder, probe.tokens.size())) return;
  PrefixSelector prefix;
  prefix.namespace_parts = NameSpaceParts(probe.name_space);
  std::vector<TokenId> tokens = probe.tokens;
  tokens.push_back(0);
  prefix.tokens = tokens;
  const auto found = engine_->PeekPrefix(prefix);
  if (!found.ok() || *found < probe.tokens.size()) {
    judge_.Violate("sequence ", probe.holder, " of ", served.worker, " holds ", probe.tokens.size(),
                   " complete tokens, others find ", found.value_or(0), " (P5)");
  }
}

void Server::AddTables(const Request& request, const Served& served, Reply& reply) {
  std::vector<SequenceHandle> handles;
  for (const SequenceView& view : engine_->ListSequences(served.worker)) {
    handles.push_back(view.handle);
  }
  auto tables = engine_->GetTables(request.lease, request.epoch, handles);
  if (!tables.ok()) {
    judge_.Violate("no tables of ", served.worker, ": ", tables.status().message());
    return;
  }
  reply.tables = std::make_shared<const std::vector<SequenceView>>(*std::move(tables));
}

void Server::EndStream(StreamId stream) {
  for (const auto& [lease, served] : served_) {
    if (served.stream != stream) continue;
    engine_->StreamBroken(lease);
    return;
  }
}

void Server::Audit() {
  const AuditReport report = engine_->Audit(plan_.content_checks);
  NoteRemovals();
  for (const AuditFinding& finding : report.findings) {
    if (finding.rule == 0 && plan_.misread > 0) continue;
    judge_.Violate("audit: rule ", finding.rule, ", block ",
                   finding.block ? std::to_string(Index(*finding.block)) : "none", ", ",
                   finding.owner, ": ", finding.message);
  }
}

void Server::Flush() {
  judge_.Trace("flush");
  engine_->Flush();
  ++shared_.removals;
  const EngineStats stats = engine_->Stats();
  if (stats.blocks.idle + stats.blocks.dead == 0) return;
  judge_.Violate("after a flush ", stats.blocks.idle, " blocks are idle, ", stats.blocks.dead,
                 " dead (E10)");
}

}  // namespace quire::simulation
