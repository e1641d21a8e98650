// Prompts that overlap: heads common to all workers, earlier conversations, tails of few different
// tokens, images on some ranges. Not thread-safe.
#ifndef QUIRE_TESTS_SIMULATION_PROMPTS_H_
#define QUIRE_TESTS_SIMULATION_PROMPTS_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "cache_service/engine/namespace_key.h"
#include "tests/simulation/content.h"
#include "tests/simulation/plan.h"
#include "tests/simulation/random.h"

namespace quire::simulation {

struct Prompt {
  Text text;
  uint32_t name_space = 0;
  std::vector<DigestRange> digests;
};

class Prompts {
 public:
  Prompts(const Plan& plan, Random& random) : plan_(plan), random_(random) {}

  Prompt Draw();
  // A finished sequence: another turn may follow.
  void Remember(const Text& text, uint32_t name_space);
  // The token that a model would sample after this content: mostly the same one.
  TokenId Sample(ContentId before);

 private:
  void AddHead(Prompt& prompt, uint32_t length);
  void AddImage(Prompt& prompt);

  const Plan& plan_;
  Random& random_;
  std::deque<Prompt> earlier_;
};

}  // namespace quire::simulation

#endif  // QUIRE_TESTS_SIMULATION_PROMPTS_H_
