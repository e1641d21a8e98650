#include "worker/runtime/request_run.h"

#include <algorithm>
#include <utility>

namespace quire::runtime {
namespace {

double Seconds(TimePoint from, TimePoint to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

RequestRun::RequestRun(Request request, TimePoint started, bool record_logits)
    : started_(started), record_logits_(record_logits) {
  result_.request = std::move(request);
  auto branch = std::make_unique<Branch>();
  branch->run = this;
  branch->tokens = result_.request.prompt;
  outputs_.push_back({.branch = branch.get(), .generated = {}, .waiting_logits = {}});
  branches_.push_back(std::move(branch));
  beams_ = {0};
}

RequestRun::Output& RequestRun::OutputOf(const Branch& branch) {
  return *std::find_if(outputs_.begin(), outputs_.end(),
                       [&branch](const Output& output) { return output.branch == &branch; });
}

void RequestRun::OnLogits(Branch& branch, std::span<const float> logits, TimePoint now) {
  if (branch.state == BranchState::kDone) return;
  if (!sampled_) result_.seconds_to_first_token = Seconds(started_, now);
  if (request().search == Search::kBeam) {
    sampled_ = true;
    OutputOf(branch).waiting_logits.assign(logits.begin(), logits.end());
    FinishBeamRound();
  } else if (!std::exchange(sampled_, true)) {
    StartSamples(branch, logits);
  } else {
    Sampled(OutputOf(branch), logits);
  }
}

void RequestRun::StartSamples(Branch& branch, std::span<const float> logits) {
  for (uint32_t sample = 1; sample < request().width; ++sample) AddFork(branch, sample);
  for (uint32_t sample = 0; sample < request().width; ++sample) {
    Sampled(outputs_[sample], logits);
  }
}

Branch& RequestRun::AddFork(Branch& parent, uint32_t sample) {
  auto child = std::make_unique<Branch>();
  child->run = this;
  child->state = BranchState::kForking;
  child->sample = sample;
  child->tokens = parent.tokens;
  child->parent = &parent;
  outputs_.push_back(
      {.branch = child.get(), .generated = OutputOf(parent).generated, .waiting_logits = {}});
  branches_.push_back(std::move(child));
  return *branches_.back();
}

void RequestRun::Sampled(Output& output, std::span<const float> logits) {
  const Branch& branch = *output.branch;
  const SamplePlace place{branch.sample, static_cast<uint32_t>(branch.tokens.size())};
  if (record_logits_) {
    output.generated.logits.insert(output.generated.logits.end(), logits.begin(), logits.end());
  }
  Append(output, Sample(logits, request().sampling, place));
}

void RequestRun::Append(Output& output, TokenId token) {
  output.branch->tokens.push_back(token);
  output.generated.tokens.push_back(token);
  if (output.generated.tokens.size() >= request().new_tokens) {
    output.branch->state = BranchState::kDone;
  }
}

void RequestRun::FinishBeamRound() {
  std::vector<BeamState> states;
  for (const size_t beam : beams_) {
    const Output& output = outputs_[beam];
    if (output.waiting_logits.empty()) return;
    states.push_back({output.generated.score, output.waiting_logits});
  }
  BeamRound round{.choices = SelectBeams(states, request().width), .logits = {}};
  for (const size_t beam : beams_) {
    std::vector<float>& logits = outputs_[beam].waiting_logits;
    if (record_logits_) round.logits.insert(round.logits.end(), logits.begin(), logits.end());
  }
  ApplyChoices(round.choices);
  for (Output& output : outputs_) output.waiting_logits.clear();
  result_.rounds.push_back(std::move(round));
}

// The first choice of a beam continues it, further ones are forks, a beam without one is dropped.
void RequestRun::ApplyChoices(const std::vector<BeamChoice>& choices) {
  std::vector<size_t> next;
  std::vector<bool> continued(beams_.size(), false);
  for (const BeamChoice& choice : choices) {
    const size_t parent = beams_[choice.parent];
    if (continued[choice.parent]) {
      AddFork(*outputs_[parent].branch, 0);
      next.push_back(outputs_.size() - 1);
    } else {
      continued[choice.parent] = true;
      next.push_back(parent);
    }
  }
  for (size_t slot = 0; slot < beams_.size(); ++slot) {
    if (!continued[slot]) outputs_[beams_[slot]].branch->state = BranchState::kDone;
  }
  for (size_t slot = 0; slot < next.size(); ++slot) {
    Output& output = outputs_[next[slot]];
    output.generated.score = choices[slot].score;
    Append(output, choices[slot].token);
  }
  beams_ = std::move(next);
}

void RequestRun::OnPreempted(Branch& branch) { OutputOf(branch).waiting_logits.clear(); }

bool RequestRun::done() const {
  return std::all_of(branches_.begin(), branches_.end(),
                     [](const auto& branch) { return branch->state == BranchState::kDone; });
}

RequestResult RequestRun::TakeResult(TimePoint now) {
  if (request().search == Search::kBeam) {
    for (const size_t beam : beams_) {
      result_.outputs.push_back(std::move(outputs_[beam].generated));
    }
  } else {
    for (Output& output : outputs_) result_.outputs.push_back(std::move(output.generated));
  }
  result_.seconds = Seconds(started_, now);
  return std::move(result_);
}

RequestResult RequestRun::Abandon(const absl::Status& status, TimePoint now) {
  result_.status = status;
  return TakeResult(now);
}

void RequestRun::NoteReuse(uint32_t tokens) {
  if (!std::exchange(begun_, true)) result_.reused_tokens = tokens;
}

}  // namespace quire::runtime
