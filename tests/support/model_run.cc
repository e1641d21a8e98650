#include "tests/support/model_run.h"

#include <algorithm>
#include <array>
#include <sstream>

namespace quire::testing {
namespace {

constexpr size_t kLogLines = 60;

EngineOptions MakeOptions(const ModelRunOptions& run_options, Choices& choices) {
  EngineOptions options;
  options.block_tokens = 2u << choices.Next(4);
  options.block_count = choices.Between(run_options.min_blocks, run_options.max_blocks);
  options.groups.assign(run_options.groups, GroupSpec{});
  const uint32_t most = options.block_count / run_options.groups * options.block_tokens;
  options.max_sequence_tokens = std::min(most, choices.Between(1, 9) * options.block_tokens + 1);
  for (uint32_t group = 1; run_options.windows && group < run_options.groups; ++group) {
    if (choices.OneIn(5)) continue;
    options.groups[group].window_tokens = choices.Between(1, 3 * options.block_tokens);
  }
  if (run_options.windows && choices.OneIn(3)) {
    options.window_slack_tokens = choices.Next(2 * options.block_tokens);
  }
  if (run_options.watermark) options.watermark = 0.05 * choices.Between(1, 6);
  if (run_options.worker_memory) options.memory = PoolMemoryKind::kWorker;
  options.block_bytes = 64;
  options.retry_interval = std::chrono::milliseconds(1);
  options.stream_grace = std::chrono::hours(1);
  options.default_lease = std::chrono::hours(24);
  options.max_lease = std::chrono::hours(24);
  options.pause_threshold = std::chrono::hours(24);
  return options;
}

}  // namespace

ModelRun::ModelRun(const ModelRunOptions& run_options, Choices& choices)
    : options_(MakeOptions(run_options, choices)), audit_interval_(run_options.audit_interval) {
  auto engine = CacheEngine::Create(options_, clock_);
  if (!engine.ok()) {
    Log("create: " + std::string(engine.status().message()));
    return;
  }
  engine_ = *std::move(engine);
  model_ = std::make_unique<NaiveEngine>(options_, clock_);
  maker_ = std::make_unique<StepMaker>(options_, choices.Between(1, 3), choices.Between(2, 8));
  std::ostringstream text;
  text << "blocks " << options_.block_count << " block_tokens " << options_.block_tokens
       << " max_sequence_tokens " << options_.max_sequence_tokens << " windows of groups";
  for (const GroupSpec& group : options_.groups) text << " " << group.window_tokens;
  text << " slack " << options_.window_slack_tokens << " watermark " << options_.watermark;
  Log(text.str());
  const uint32_t players = choices.Between(1, 3);
  for (uint32_t i = run_options.worker_memory ? 1 : players; i > 0; --i) {
    Player& player = players_.emplace_back();
    player.name = "w" + std::to_string(i);
    Attach(player);
  }
}

void ModelRun::Log(const std::string& text) {
  log_.push_back(text);
  if (log_.size() > kLogLines) log_.pop_front();
}

void ModelRun::Attach(Player& player) {
  const uint64_t incarnation = player.incarnation + 1;
  AttachParams params;
  params.worker = player.name;
  params.incarnation = incarnation;
  params.model_fingerprint = kFingerprint;
  const auto attached = engine_->Attach(params);
  player = {player.name,
            incarnation,
            attached.ok() ? attached->lease : "",
            model_->Attach(player.name, kFingerprint),
            0,
            0,
            0,
            {}};
  Log(player.name + " attaches as worker " + std::to_string(player.number));
}

void ModelRun::ReportProgress(Player& player, Choices& choices) {
  const StepNumber must = player.last + 1 > options_.max_steps_in_flight
                              ? player.last + 1 - options_.max_steps_in_flight
                              : 0;
  const auto open = static_cast<uint32_t>(player.last - player.applied);
  player.applied = std::max(must, player.applied + choices.Next(open + 1));
  const auto unreported = static_cast<uint32_t>(player.applied - player.completed);
  player.completed += choices.OneIn(2) ? unreported : choices.Next(unreported + 1);
  std::erase_if(player.sent, [&](const auto& sent) { return sent->params.step <= player.applied; });
}

std::string ModelRun::ActStep(Player& player, Choices& choices) {
  ReportProgress(player, choices);
  auto sent = std::make_shared<Player::Sent>();
  sent->made = maker_->Make(choices, model_->Sequences(player.number), left_out_);
  StepParams& params = sent->params;
  params.lease = player.lease;
  params.epoch = options_.epoch;
  params.step = ++player.last;
  params.applied_step = player.applied;
  params.completed_step = player.completed;
  params.all_or_nothing = choices.OneIn(6);
  params.operations = sent->made.operations;
  operations_ += params.operations.size();
  std::ostringstream text;
  text << player.name << " step " << params.step << " completed " << params.completed_step
       << (params.all_or_nothing ? " all or nothing" : "") << "\n"
       << sent->made.text;
  Log(text.str());
  const auto answer = engine_->Step(params);
  if (!answer.ok()) return "step refused: " + std::string(answer.status().message());
  sent->answer = *answer;
  player.sent.push_back(sent);
  return model_->Step(player.number, params, **answer);
}

// A step sent again gets the stored answer and changes nothing but the counters.
std::string ModelRun::ActRepeat(Player& player, Choices& choices) {
  if (player.sent.empty()) return "";
  const auto& sent = *player.sent[choices.Next(static_cast<uint32_t>(player.sent.size()))];
  Log(player.name + " repeats step " + std::to_string(sent.params.step));
  const auto answer = engine_->Step(sent.params);
  if (!answer.ok()) return "repeat refused: " + std::string(answer.status().message());
  if (!(**answer == *sent.answer)) return "a repeated step got another answer";
  StepParams other = sent.params;
  FinishOp unknown;
  unknown.sequence = 77;
  const std::vector<Operation> operations = {unknown};
  other.operations = operations;
  const Reason reason = ReasonOf(engine_->Step(other).status());
  return reason == Reason::kInvalidArgument ? "" : "a repeat with other operations passed";
}

std::string ModelRun::ActWrongStep(Player& player, Choices& choices) {
  StepParams params;
  params.lease = player.lease;
  params.epoch = options_.epoch;
  params.step = player.last + 1;
  params.applied_step = player.applied;
  params.completed_step = player.completed;
  Reason expected = Reason::kInvalidArgument;
  switch (choices.Next(5)) {
    case 0:
      params.step += 1 + choices.Next(3);
      expected = Reason::kStepOutOfOrder;
      break;
    case 1:
      params.epoch += 1;
      expected = Reason::kEpochMismatch;
      break;
    case 2:
      params.lease += "x";
      expected = Reason::kLeaseExpired;
      break;
    case 3:
      params.applied_step = params.step;
      break;
    default:
      params.completed_step = params.applied_step + 1;
      break;
  }
  Log(player.name + " sends a wrong step");
  const Reason reason = ReasonOf(engine_->Step(params).status());
  if (reason == expected) return "";
  return "wrong step: expected " + std::string(ReasonName(expected)) + ", got " +
         std::string(ReasonName(reason));
}

std::string ModelRun::ActRenew(Player& player, Choices& choices) {
  ReportProgress(player, choices);
  Log(player.name + " renews, completed " + std::to_string(player.completed));
  const auto renewed =
      engine_->Renew({player.lease, options_.epoch, player.applied, player.completed});
  if (!renewed.ok()) return "renewal refused: " + std::string(renewed.status().message());
  if (renewed->expected_step != player.last + 1) return "renewal expects another step";
  model_->Complete(player.number, player.completed);
  return "";
}

std::string ModelRun::ActEndWorker(Player& player) {
  Log(player.name + " ends");
  const auto ended = engine_->EndWorker(player.name);
  if (!ended.ok()) return "end refused: " + std::string(ended.status().message());
  const size_t sequences = model_->Sequences(player.number).size();
  model_->EndWorker(player.number);
  Attach(player);
  return *ended == sequences ? "" : "another number of sequences ended";
}

std::string ModelRun::ActOn(Player& player, Choices& choices) {
  const uint32_t kind = choices.Next(100);
  if (kind < 76) return ActStep(player, choices);
  ++operations_;
  if (kind < 80) return ActRenew(player, choices);
  if (kind < 83) return ActRepeat(player, choices);
  if (kind < 85) return ActWrongStep(player, choices);
  if (kind < 88) return ActPin(choices);
  if (kind < 90) return ActUnpin(choices);
  if (kind < 92) return ActEvict(choices);
  if (kind < 93) return ActEndWorker(player);
  if (kind < 97) return ActPeek(choices);
  const Duration pause = std::chrono::microseconds(250 * choices.Between(1, 40));
  Log("wait " + std::to_string(pause.count()) + "ns");
  clock_.Advance(pause);
  return "";
}

std::string ModelRun::Act(Choices& choices, uint32_t left_out) {
  if (engine_ == nullptr) return "";
  left_out_ = left_out;
  Player& player = players_[choices.Next(static_cast<uint32_t>(players_.size()))];
  std::string difference = ActOn(player, choices);
  if (difference.empty()) difference = CompareState();
  ++actions_;
  if (difference.empty() && actions_ % audit_interval_ == 0) {
    for (const AuditFinding& finding : engine_->Audit(false).findings) {
      difference += "audit rule " + std::to_string(finding.rule) + ": " + finding.message + "\n";
    }
  }
  return difference;
}

}  // namespace quire::testing
