// Guesses the next tokens by looking the last ones up in the text so far.
#ifndef QUIRE_WORKER_RUNTIME_DRAFTER_H_
#define QUIRE_WORKER_RUNTIME_DRAFTER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "worker/runtime/sampler.h"

namespace quire::runtime {

// The tokens that followed the last earlier occurrence of the final two tokens, at most `count`.
// Empty if they did not occur. Drafts never change the text: each is checked by the model.
std::vector<TokenId> LookUpDrafts(std::span<const TokenId> tokens, uint32_t count);

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_DRAFTER_H_
