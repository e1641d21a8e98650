// One token stream of a request, from the prompt to its last token.
#ifndef QUIRE_WORKER_RUNTIME_BRANCH_H_
#define QUIRE_WORKER_RUNTIME_BRANCH_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "worker/client/types.h"
#include "worker/runtime/sampler.h"

namespace quire::runtime {

class RequestRun;

enum class BranchState : uint8_t {
  kWaiting,    // has no sequence; to be begun with all its tokens
  kBeginning,  // begin sent
  kForking,    // to be forked from `parent`, or fork sent
  kActive,     // has a sequence
  kDone,       // generated all its tokens, or dropped by the search
};

// Three counts into `tokens` rise in this order: computed by a launch, entered by an operation that
// was sent, and known. `computed` may pass `entered` by accepted drafts, and
// both of the others by what launches in flight choose.
struct Branch {
  RequestRun* run = nullptr;
  BranchState state = BranchState::kWaiting;
  uint32_t sample = 0;
  // Prompt and generated tokens.
  std::vector<TokenId> tokens;

  client::SequenceHandle handle = 0;
  // Tokens given at begin; they enter with begin and extend, the others with advance.
  uint32_t given = 0;
  uint32_t entered = 0;
  uint32_t computed = 0;
  // Launches in flight that choose a token each: with them `computed` runs ahead of what is known.
  uint32_t choosing = 0;
  // The last of them carries drafts: nobody knows yet where its choice will stand.
  bool drafting = false;
  // Where that launch puts its choice.
  std::shared_ptr<TokenId> chosen;
  // Computed tokens that were stated as committed by a commit operation.
  uint32_t committed = 0;
  // Slots that steps in flight ask for.
  uint32_t asked_slots = 0;
  // A begin, fork or extend is unanswered: the sequence's length is not certain.
  bool growing = false;
  // Its growth, or its begin beside other branches, was refused; asked again at the next retry.
  bool stalled = false;
  // Source of the fork, until the fork is answered.
  Branch* parent = nullptr;
  // A fork of this branch is in the step being built, or waits for one.
  bool forked_now = false;

  // Known tokens to compute.
  uint32_t pending() const {
    const auto known = static_cast<uint32_t>(tokens.size());
    return known > computed ? known - computed : 0;
  }

  bool has_sequence() const { return handle != 0; }

  // Back to the queue: everything is computed again, from what the cache still has.
  void Reset() {
    state = BranchState::kWaiting;
    handle = 0;
    given = entered = computed = committed = asked_slots = choosing = 0;
    growing = stalled = forked_now = drafting = false;
    chosen.reset();
    parent = nullptr;
  }
};

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_BRANCH_H_
