// The host side of one worker process, written from design.md section 4: attach, numbered steps
// with several in flight, resending, answers applied whole and in order, launches ahead of the
// answers, completion, leases, re-attach after the server or the lease has ended.
//
// It does what a correct worker may do, at random. It holds the server to what an answer must say,
// and the device holds it to what the blocks must contain. Not thread-safe.
#ifndef QUIRE_TESTS_SIMULATION_CLIENT_H_
#define QUIRE_TESTS_SIMULATION_CLIENT_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/device.h"
#include "tests/simulation/judge.h"
#include "tests/simulation/message.h"
#include "tests/simulation/network.h"
#include "tests/simulation/plan.h"
#include "tests/simulation/prompts.h"
#include "tests/simulation/sequence.h"
#include "tests/simulation/shared.h"

namespace quire::simulation {

enum class OpKind : uint8_t { kBegin, kAdvance, kExtend, kCommit, kFork, kTruncate, kFinish };

// One operation, or one entry of an advance, of a step under way.
struct SentOp {
  OpKind kind = OpKind::kBegin;
  uint32_t operation = 0;
  uint32_t entry = 0;
  SequencePtr sequence{};
  // Length that it starts from.
  uint32_t start = 0;
  // Tokens that enter, slots, committed length, shared length, or length to cut to.
  uint32_t amount = 0;
  uint32_t ahead = 0;
  // Of a begin.
  std::optional<uint32_t> allocate{};
  bool reads_cache = true;
  std::vector<SequencePtr> children{};
  // A fork in the middle of a prompt drops the rest.
  bool cuts = false;
};

struct StepUnderWay {
  StepNumber number = 0;
  std::shared_ptr<StepContent> content;
  std::vector<SentOp> ops;
  Tick sent_at = 0;
  std::shared_ptr<const Reply> reply;
};

class Client {
 public:
  Client(Shared& shared, const WorkerPlan& plan, ProcessId process, uint64_t incarnation,
         Device& device);

  // One tick of the host.
  void Run();
  void Receive(std::shared_ptr<const Reply> reply);
  // The process was stopped between two launches of a round and goes on with it.
  void FinishRound();

  // Finishes all sequences, or just lets go of them, and detaches.
  void Leave(bool politely);

  bool exited() const { return state_ == State::kExited; }

  // The process is gone: its connection breaks. Its mappings end with the device's work.
  void Die();
  void EndMappings();

 private:
  enum class State : uint8_t { kDetached, kAttaching, kMapping, kAttached, kDropping, kExited };

  // --- client.cc: leases and messages ---
  void SendAttach();
  void OnAttached(const Reply& reply);
  std::shared_ptr<PoolMemory> OwnMemory() const;
  void MapNext();
  void UnmapNext();
  void Work();
  void Drop(const char* why);
  void OnError(const Reply& reply);
  void OnStepError(const Reply& reply);
  void KeepStream();
  void ResendLate();
  void Renew();
  void Detach();
  Request CallOf(Call call) const;
  void SendStepMessage(StepUnderWay& step);

  bool Quiet() const { return under_way_.empty() && device_.idle(); }

  Tick now() const { return shared_.judge.now(); }

  // --- client_send.cc: what a step contains ---
  void SendStep();
  void PlanSequence(const SequencePtr& sequence);
  void PlanPrompt(const SequencePtr& sequence);
  void PlanDecode(const SequencePtr& sequence);
  bool MaySend(Sequence& sequence);
  void AddBegin();
  void AddAdvance(const SequencePtr& sequence);
  void AddExtend(const SequencePtr& sequence, uint32_t slots);
  void AddCommit(const SequencePtr& sequence);
  void AddFork(const SequencePtr& sequence);
  void AddTruncate(const SequencePtr& sequence);
  void AddFinish(const SequencePtr& sequence);
  void CloseAdvance();
  SentOp& Add(OpKind kind, const SequencePtr& sequence, Operation operation);
  SequencePtr NewSequence(Text text, uint32_t name_space);
  SequencePtr MakeChild(const Sequence& parent, uint32_t shared);
  void CutText(Sequence& sequence, uint32_t length);
  void AddProbe(Request& request);

  // --- client_apply.cc: what an answer means ---
  void ApplyAnswers();
  void Apply(const StepUnderWay& step);
  void ApplyOps(const StepUnderWay& step);
  void OnNotice(const SequenceNotice& notice);
  void ApplyBegin(const SentOp& op, const StepUnderWay& step);
  void ApplyAdvance(const SentOp& op, StepNumber step);
  void ApplyFork(const SentOp& op, const StepUnderWay& step);
  void ApplyTruncate(const SentOp& op, StepNumber step);
  void OnSuccess(const SentOp& op, const StepUnderWay& step);
  void OnFailure(const SentOp& op, StepNumber step, const OperationFailure& failure);
  void CheckReason(const SentOp& op, StepNumber step, const OperationFailure& failure);
  void CheckClaim(const SentOp& op, const OperationFailure& failure);
  void GiveWay(Sequence& sequence);
  void NeverHappened(const SentOp& op);
  void ApplyRun(const TableRun& run, const StepResult& answer);
  void StartChildTables(SequenceHandle child);
  void Forget();
  static Tables& Writable(Sequence& sequence);
  void SettleTables();
  void CompareTables(const std::vector<SequenceView>& views);
  void NoteCommit(Sequence& sequence, StepNumber step);
  Sequence* Find(SequenceHandle handle);
  uint32_t BlocksFor(uint32_t slots) const;

  // --- client_launch.cc ---
  void LaunchAll();
  void LaunchEach();
  void Launch(Sequence& sequence);
  void LaunchPrompt(Sequence& sequence, uint32_t end);
  void LaunchDecode(Sequence& sequence, uint32_t drafts);
  void LaunchStale(Sequence& sequence);
  void Queue(Sequence& sequence, Kernel kernel);
  bool TablesCover(const Sequence& sequence, const Kernel& kernel) const;
  void NoteDevice();

  template <typename... Parts>
  void Violate(const Parts&... parts) {
    shared_.judge.Violate(plan_.name, " (process ", process_, "): ", parts...);
  }

  template <typename... Parts>
  void Trace(const Parts&... parts) const {
    shared_.judge.Trace(plan_.name, " (process ", process_, "): ", parts...);
  }

  Shared& shared_;
  Random& random_;
  const WorkerPlan plan_;
  const ProcessId process_;
  const uint64_t incarnation_;
  Device& device_;

  State state_ = State::kDetached;
  bool leaving_ = false;
  bool polite_ = true;
  bool detaching_ = false;
  Tick retry_at_ = 0;
  // Of a lock-step worker: its renewal may still arrive.
  Tick renewal_until_ = 0;
  Tick attach_since_ = 0;
  std::shared_ptr<PoolMemory> memory_;
  uint32_t ranks_mapped_ = 0;
  LeaseId lease_;
  uint64_t lease_number_ = 0;
  StreamId stream_ = 0;
  // When the last answered call was sent, and the last call of all.
  Tick renewed_at_ = 0;
  Tick called_at_ = 0;

  StepNumber last_sent_ = 0;
  StepNumber applied_ = 0;
  StepNumber completed_ = 0;
  StepNumber reported_ = 0;
  std::deque<StepUnderWay> under_way_;
  std::vector<SequencePtr> sequences_;
  SequenceHandle next_handle_ = 1;

  // The step being made: its operations and the columns of an advance that is still open.
  StepUnderWay* making_ = nullptr;

  struct Columns {
    std::vector<SequenceHandle> handles;
    std::vector<uint32_t> starts, counts, aheads;
    std::vector<TokenId> tokens;
  };

  Columns columns_;

  // While an answer is applied: children without tables, with their parents and shared blocks.
  struct NewChild {
    SequencePtr child;
    SequencePtr parent;
    uint32_t blocks = 0;
  };

  std::vector<NewChild> new_children_;
};

}  // namespace quire::simulation

#endif  // QUIRE_TESTS_SIMULATION_CLIENT_H_
