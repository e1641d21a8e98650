// Operations that were sent and wait for their answer.
#ifndef QUIRE_WORKER_RUNTIME_ISSUED_H_
#define QUIRE_WORKER_RUNTIME_ISSUED_H_

#include <memory>
#include <vector>

#include "worker/client/step.h"
#include "worker/runtime/branch.h"
#include "worker/runtime/request_run.h"

namespace quire::runtime {

enum class IssuedKind : uint8_t { kBegin, kFork, kGrow, kAdvance, kRelease };

// `run` keeps the branch alive until the answer is applied. If the branch has another handle by
// then, it was preempted in between and the answer no longer concerns it.
struct Issued {
  IssuedKind kind = IssuedKind::kAdvance;
  client::OperationId id{};
  std::shared_ptr<RequestRun> run{};
  Branch* branch = nullptr;
  client::SequenceHandle handle = 0;
};

// Rows of one branch in the next launch: tokens [computed, computed + rows), the last `drafts` of
// which are proposals and not in branch.tokens.
struct PlannedRows {
  std::shared_ptr<RequestRun> run{};
  Branch* branch = nullptr;
  uint32_t rows = 0;
  std::vector<TokenId> drafts{};
  // The rows reach the last token: its logits (and those of the drafts) are wanted.
  bool wants_logits = false;
  // The one row is a token that a launch in flight chooses.
  bool unknown = false;
  // The sequence the rows were computed for; the branch may have another by the time they are done.
  client::SequenceHandle handle = 0;
};

// One step to send and the launch that goes with it.
struct Plan {
  client::Step step{};
  std::vector<Issued> issued{};
  std::vector<PlannedRows> rows{};
};

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_ISSUED_H_
