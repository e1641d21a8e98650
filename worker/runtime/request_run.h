// A request in progress: turns logits into tokens, branches and at last a result.
#ifndef QUIRE_WORKER_RUNTIME_REQUEST_RUN_H_
#define QUIRE_WORKER_RUNTIME_REQUEST_RUN_H_

#include <memory>
#include <span>
#include <vector>

#include "cache_service/base/clock.h"
#include "worker/runtime/branch.h"
#include "worker/runtime/request.h"

namespace quire::runtime {

// Knows nothing of blocks, steps or the server. Not thread-safe.
class RequestRun {
 public:
  RequestRun(Request request, TimePoint started, bool record_logits);
  RequestRun(const RequestRun&) = delete;
  RequestRun& operator=(const RequestRun&) = delete;

  const Request& request() const { return result_.request; }

  TimePoint started() const { return started_; }

  // In order of creation; branches are never removed.
  const std::vector<std::unique_ptr<Branch>>& branches() const { return branches_; }

  // `logits` are those behind the last computed token of the branch. Appends to its tokens, ends
  // it, or adds branches in state kForking. A beam search does so once all its beams have logits.
  void OnLogits(Branch& branch, std::span<const float> logits, TimePoint now);

  // Logits that a preempted branch waits with are computed again.
  void OnPreempted(Branch& branch);

  // Whether more rows of one launch may be offered to OnLogits, as draft checking does.
  bool may_draft() const { return result_.request.search == Search::kSamples; }

  // Whether the next token of each branch depends on that branch alone, so that it can be computed
  // before the scheduler knows the last one.
  bool may_run_ahead() const { return may_draft() && (request().width == 1 || sampled_); }

  // Tokens that the branch has still to choose.
  uint32_t remaining(const Branch& branch) const {
    const size_t all = request().prompt.size() + request().new_tokens;
    return static_cast<uint32_t>(all - branch.tokens.size());
  }

  bool done() const;

  // Once done, or to give up with an error.
  RequestResult TakeResult(TimePoint now);
  RequestResult Abandon(const absl::Status& status, TimePoint now);

  void CountPreemption() { ++result_.preemptions; }

  uint32_t preemptions() const { return result_.preemptions; }

  // The first begin's hit.
  void NoteReuse(uint32_t tokens);

  bool begun() const { return begun_; }

 private:
  // What belongs to a branch beside its tokens.
  struct Output {
    Branch* branch = nullptr;
    Generated generated;
    // Beam search: logits of the current round.
    std::vector<float> waiting_logits;
  };

  Output& OutputOf(const Branch& branch);
  Branch& AddFork(Branch& parent, uint32_t sample);
  void Sampled(Output& output, std::span<const float> logits);
  void StartSamples(Branch& branch, std::span<const float> logits);
  void FinishBeamRound();
  void ApplyChoices(const std::vector<BeamChoice>& choices);
  void Append(Output& output, TokenId token);

  RequestResult result_;
  const TimePoint started_;
  const bool record_logits_;
  bool begun_ = false;
  bool sampled_ = false;
  std::vector<std::unique_ptr<Branch>> branches_;
  // By branch. For a beam search `beams_` holds the indices of the live ones, in slot order.
  std::vector<Output> outputs_;
  std::vector<size_t> beams_;
};

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_REQUEST_RUN_H_
