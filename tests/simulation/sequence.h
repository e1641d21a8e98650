// One sequence as its client knows it.
#ifndef QUIRE_TESTS_SIMULATION_SEQUENCE_H_
#define QUIRE_TESTS_SIMULATION_SEQUENCE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "tests/simulation/content.h"
#include "tests/simulation/device.h"
#include "tests/simulation/lengths.h"

namespace quire::simulation {

struct Sequence;
using SequencePtr = std::shared_ptr<Sequence>;

// A kernel whose sampled tokens the host does not know yet.
struct UnknownLaunch {
  // Tokens that it adds, and drafts that it tries.
  uint32_t adds = 0;
  uint32_t drafts = 0;
  // The text was cut since: its tokens count no more.
  bool stale = false;
};

// Promise of growth that cannot fail, common to a begin and its forks.
struct ClaimNote {
  uint32_t reserve_tokens = 0;
  // Most tokens that may be entered and not committed: the prompt.
  uint32_t chunk = 0;
  // One of its sequences was truncated: what others still hold of that does not come back.
  bool cut = false;
};

struct Sequence {
  SequenceHandle handle = 0;
  uint32_t name_space = 0;
  // Its prompt has an image.
  bool has_image = false;

  // All tokens, sampled ones that the host does not know yet included. The last one has no bytes.
  std::shared_ptr<Text> text;
  uint32_t known = 0;
  // The most tokens that the text may have, as far as the host knows.
  uint32_t bound = 0;
  // Tokens whose kernels are launched.
  uint32_t launched = 0;
  std::deque<UnknownLaunch> unknown;

  Lengths sent;
  Lengths answered;
  // The length as sent is known: not while a begin of part of a prompt is unanswered.
  bool sent_known = true;
  // Operations may name it: its begin is answered, or the fork that makes it is sent.
  bool usable = false;
  bool begun = false;
  bool ended = false;
  std::shared_ptr<Tables> tables;
  // Operations under way.
  uint32_t unanswered = 0;
  uint32_t truncates_unanswered = 0;
  // An operation failed: nothing is sent until all under way are answered.
  bool stalled = false;
  // To be finished as soon as possible; and a finish is sent.
  bool doomed = false;
  bool ending = false;
  // It was truncated, or forked from such a one: its tables may have got blocks back.
  bool cut = false;
  // A truncate or fork that cut its text failed: the device has nothing more to do for it.
  bool adrift = false;

  // While a truncate is under way: the text as the device still has it.
  std::shared_ptr<const Text> old_text;
  uint32_t old_launched = 0;

  // Finished at the latest with this many tokens.
  uint32_t target = 0;
  std::shared_ptr<ClaimNote> claim;
  // Its last growth was refused in this tick; 0: none.
  Tick refused_at = 0;

  // --- What must be public by now (P5) ---
  uint64_t removals_at_begin = 0;
  // Steps that committed, with the length.
  std::deque<std::pair<StepNumber, uint32_t>> commits;
};

}  // namespace quire::simulation

#endif  // QUIRE_TESTS_SIMULATION_SEQUENCE_H_
