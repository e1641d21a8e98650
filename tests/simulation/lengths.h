// The lengths of one sequence, moved by operations as design.md section 4 says. A client keeps them
// twice: as sent, which is what it hopes, and as answered, which is what holds.
#ifndef QUIRE_TESTS_SIMULATION_LENGTHS_H_
#define QUIRE_TESTS_SIMULATION_LENGTHS_H_

#include <algorithm>
#include <cstdint>

#include "cache_service/engine/types.h"

namespace quire::simulation {

struct Lengths {
  uint32_t committed = 0;
  uint32_t length = 0;
  uint32_t reserved = 0;
  // Tokens that the begin named; those past length have no slots yet.
  uint32_t given = 0;
  // Last step that named the sequence, and its length before: tokens below entered earlier.
  StepNumber touched = 0;
  uint32_t before = 0;

  // Tokens that entered before `step`: the most that it may claim to be computed.
  uint32_t Entered(StepNumber step) const { return touched == step ? before : length; }

  // What a fork in `step` shares.
  uint32_t Shared(StepNumber step) const { return std::max(committed, Entered(step)); }

  void Touch(StepNumber step) {
    before = Entered(step);
    touched = step;
  }

  void Begin(StepNumber step, uint32_t reused, uint32_t entered, uint32_t prompt) {
    *this = {reused, entered, entered, prompt, step, reused};
  }

  void CommitEntered(StepNumber step) {
    Touch(step);
    committed = std::max(committed, before);
  }

  void Enter(uint32_t count) {
    length += count;
    reserved = std::max(reserved, length);
    if (count > 0) given = length;
  }

  void KeepAhead(uint32_t ahead, uint32_t most) {
    reserved = std::max(reserved, std::min(length + ahead, most));
  }

  void Extend(StepNumber step, uint32_t slots, uint32_t most) {
    Touch(step);
    slots = std::min(slots, most);
    reserved = std::max(reserved, slots);
    if (length < given) length = std::max(length, std::min(given, slots));
  }

  void Commit(StepNumber step, uint32_t to) {
    Touch(step);
    committed = std::max(committed, to);
  }

  void Fork(StepNumber step) {
    CommitEntered(step);
    given = std::min(given, length);
  }

  void Truncate(StepNumber step, uint32_t to) {
    Touch(step);
    length = reserved = given = to;
    committed = std::min(committed, to);
    before = std::min(before, to);
  }
};

}  // namespace quire::simulation

#endif  // QUIRE_TESTS_SIMULATION_LENGTHS_H_
