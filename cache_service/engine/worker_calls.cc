#include "cache_service/engine/worker_calls.h"

namespace quire {

Error CheckEpoch(Epoch own, Epoch given) {
  if (given == own) return {};
  if (given == 0) return InvalidArgument("epoch", "required, as the attach answered it");
  return MakeError(Reason::kEpochMismatch, "the server has restarted since this lease was given",
                   {{"epoch", own}, {"given", given}});
}

}  // namespace quire
