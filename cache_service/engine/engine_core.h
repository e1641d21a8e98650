// The engine without its lock: all rules of one pool over pool, tree, workers and sequences.
//
// Not thread-safe; CacheEngine locks. Every entry point first calls ApplyDue. The members are
// spread over one source file per operation or question: core_step, core_complete, core_sequences,
// core_hit, core_begin, core_begin_tables, core_advance, core_grow, core_room, core_evict,
// core_claims, core_commit, core_publish, core_variants, core_uses, core_fork, core_truncate,
// core_release, core_lease, core_lease_end, core_due, core_remove, core_pins, core_views,
// core_content.
#ifndef QUIRE_CACHE_SERVICE_ENGINE_ENGINE_CORE_H_
#define QUIRE_CACHE_SERVICE_ENGINE_ENGINE_CORE_H_

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "cache_service/base/clock.h"
#include "cache_service/base/error.h"
#include "cache_service/engine/admin_calls.h"
#include "cache_service/engine/block_pool.h"
#include "cache_service/engine/cache_engine.h"
#include "cache_service/engine/content_checks.h"
#include "cache_service/engine/engine_options.h"
#include "cache_service/engine/engine_stats.h"
#include "cache_service/engine/journal.h"
#include "cache_service/engine/pool_groups.h"
#include "cache_service/engine/prefix_tree.h"
#include "cache_service/engine/sequence.h"
#include "cache_service/engine/step.h"
#include "cache_service/engine/window_protection.h"
#include "cache_service/engine/worker_calls.h"
#include "cache_service/engine/worker_state.h"

namespace quire {

class EngineCore : private BlockingListener {
 public:
  EngineCore(const EngineOptions& options, const Clock& clock, const EngineSeams& seams);

  // --- core_lease.cc, core_lease_end.cc, core_due.cc ---
  absl::StatusOr<AttachResult> Attach(const AttachParams& params);
  absl::StatusOr<RenewResult> Renew(const RenewParams& params);
  absl::Status Detach(const LeaseId& lease, Epoch epoch, StepNumber completed_step,
                      CallerTenant caller);
  void StreamBroken(const LeaseId& lease);
  absl::StatusOr<uint32_t> EndWorker(std::string_view worker);
  uint32_t StartDraining();
  TimePoint RunMaintenance();

  // --- core_step.cc, core_complete.cc, core_sequences.cc ---
  absl::StatusOr<std::shared_ptr<const StepResult>> Step(const StepParams& params);

  // --- core_views.cc ---
  absl::StatusOr<std::vector<SequenceView>> GetTables(const LeaseId& lease, Epoch epoch,
                                                      std::span<const SequenceHandle> sequences,
                                                      CallerTenant caller);
  std::vector<WorkerView> ListWorkers();
  std::vector<SequenceView> ListSequences(std::string_view worker);
  absl::StatusOr<SequenceView> GetSequence(std::string_view worker, SequenceHandle handle);
  std::vector<UnavailableView> ListUnavailable();
  EngineStats Stats();
  uint64_t LiveSequences();

  // --- core_pins.cc, core_remove.cc ---
  absl::StatusOr<uint32_t> PeekPrefix(const PrefixSelector& prefix);
  absl::StatusOr<PinResult> PinPrefix(const PrefixSelector& prefix, std::string_view owner,
                                      Duration duration);
  absl::Status UnpinPrefix(std::string_view pin_id);
  std::vector<PinView> ListPins();
  absl::StatusOr<uint64_t> EvictPrefix(const PrefixSelector& prefix);
  uint64_t Flush();
  AuditReport Audit();

  // --- core_content.cc ---
  // Checksums to compute outside the lock: those wanted, or of all blocks.
  std::vector<ContentCheck> TakeContentChecks(bool all);
  std::vector<AuditFinding> FinishContentChecks(const std::vector<ContentCheck>& checks);

  // Applies what is due by the clock: leases, retention, pins.
  void ApplyDue();
  // Events for the observer, delivered by CacheEngine after unlocking.
  std::vector<uint64_t> TakeEndedLeases();

 private:
  friend class InvariantChecker;

  // A prefix found in the tree.
  struct Hit {
    // Nodes that match whole, from the root on.
    std::vector<NodeId> path;
    // Of group 0, as long as the path.
    std::vector<BlockId> blocks;
    // The blocks are all there is: there is one group, and each is the tree's own.
    bool plain = false;
    uint32_t whole_blocks = 0;
    // Tokens copied from `source`, which follows the whole blocks.
    NodeId source = kNoNode;
    uint32_t partial_tokens = 0;

    void Shorten(uint32_t whole) {
      whole_blocks = whole;
      path.resize(whole);
      blocks.resize(whole);
    }

    uint32_t Tokens(uint32_t block_tokens) const {
      return whole_blocks * block_tokens + partial_tokens;
    }
  };

  struct BeginPlan {
    Hit hit;
    // Tokens that will have slots.
    uint32_t length = 0;
    uint64_t new_blocks = 0;
    // Blocks of the hit that would otherwise be available.
    uint64_t idle_hits = 0;
    // Those of them that back claims of other workers if open ones get scarce.
    uint64_t shared_hits = 0;
    uint64_t claim_blocks = 0;
  };

  struct Pin {
    std::string id;
    std::string owner;
    TimePoint deadline;
    std::vector<BlockId> blocks;
  };

  struct Waiter {
    Sequence* sequence;
    TimePoint last_refused;
  };

  // Why blocks are not given.
  struct Shortage {
    uint64_t needed = 0;
    uint64_t hit_blocks = 0;
    uint64_t idle_hits = 0;
    uint64_t own_claim = 0;
    bool is_begin = false;
    const Sequence* waiter = nullptr;
  };

  // --- core_step.cc, core_complete.cc, core_sequences.cc ---
  absl::StatusOr<std::shared_ptr<const StepResult>> StepOf(WorkerState& worker,
                                                           const StepParams& params);
  Error CheckStep(const StepParams& params, WorkerState& worker);
  absl::StatusOr<std::shared_ptr<const StepResult>> RepeatStep(const StepParams& params,
                                                               WorkerState& worker);
  Error CheckOperationCount(const StepParams& params) const;
  void RunOperations(const StepParams& params);
  Error RunOperation(const Operation& operation);
  const Sequence* NamedSequence(const Operation& operation);
  void FailOperation(Error error, const Sequence* sequence, uint32_t entry = 0,
                     AdvancePart part = AdvancePart::kNone);
  void Complete(WorkerState& worker, StepNumber completed);
  void FlushUnreported(WorkerState& worker);
  void AppendEntry(const Sequence& sequence, uint32_t group, uint32_t index, BlockId block);
  // The whole table, as one run.
  void AppendTable(const Sequence& sequence, uint32_t group);
  void Log(BlockId block, LogKind kind);
  static void LogAt(WorkerState& worker, StepNumber step, BlockId block, LogKind kind);
  void CompactLog(WorkerState& worker);
  PoolCounts CountsFor(const WorkerState& worker) const;
  Sequence* Find(SequenceHandle handle);
  // The sequence if it exists and has `start_length`; otherwise `error` is set.
  Sequence* FindAt(SequenceHandle handle, uint32_t start_length, Error& error);
  void Touch(Sequence& sequence);
  void SaveSequence(Sequence& sequence);

  // --- core_begin.cc, core_begin_tables.cc ---
  Error Begin(const BeginOp& op);
  void CountBegin(const BeginOp& op, uint32_t hit, uint32_t partial);
  // The tenant's own numbers, or those of all that came too late.
  TenantStats& StatsOf(const std::string& tenant);
  std::string LabelOf(const std::string& tenant) const;
  BlockStateCounts CountsOf(uint32_t group) const;
  Error ValidateBegin(const BeginOp& op) const;
  // --- core_hit.cc ---
  Hit FindHit(NodeId root, std::span<const TokenId> tokens, std::span<const DigestRange> digests,
              WorkerSlot worker, uint32_t recompute_tail) const;
  bool Visible(NodeId node, WorkerSlot worker) const;
  // The block of a node that `worker` may use, or kNoBlock.
  BlockId VisibleBlock(NodeId node, uint32_t group, WorkerSlot worker) const;
  bool WindowsResident(const Hit& hit, WorkerSlot worker, uint32_t& missing_block) const;
  template <typename Content>
  void CutToWindows(NodeId root, Content content, WorkerSlot worker, uint32_t limit,
                    Hit& hit) const;
  void FitWindows(Hit& hit, WorkerSlot worker) const;
  BeginPlan PlanBegin(const BeginOp& op, Hit hit) const;
  void CountIdleHits(const Hit& hit, BeginPlan& plan) const;
  template <typename Visit>
  void VisitHitBlocks(const Hit& hit, WorkerSlot worker, Visit visit) const;
  uint64_t Deficit(const BeginPlan& plan, const Sequence** waiter);
  bool ShortenHit(const BeginOp& op, uint64_t deficit, bool promised, Hit& hit) const;
  Sequence& CreateSequence(const BeginOp& op, const BeginPlan& plan, std::string_view key);
  // So many more would be above the worker's limit.
  Error TooManySequences(uint64_t more) const;
  Error TooManyEntries(uint64_t more) const;
  void HoldHit(Sequence& sequence, const Hit& hit);
  void HoldPlainHit(Sequence& sequence, const Hit& hit);
  void TakeBlocks(Sequence& sequence, uint32_t count);
  void CopyPartial(Sequence& sequence, const Hit& hit);

  // --- core_advance.cc ---
  void Advance(const AdvanceOp& op);
  std::span<Sequence* const> FindAdvancing(const AdvanceOp& op);
  void PrefetchLeaving();
  void AdvanceEntry(const AdvanceOp& op, uint32_t entry, std::span<const TokenId> tokens,
                    Sequence* sequence);

  // --- core_grow.cc, core_room.cc, core_evict.cc ---
  Error Extend(const ExtendOp& op);
  // Holds slots up to `slots` in total; copies the tail first if it is shared.
  Error Grow(Sequence& sequence, uint32_t slots, bool wait);
  bool TailNeedsCopy(const Sequence& sequence, uint32_t group) const;
  void CopyTail(Sequence& sequence, uint32_t tokens);
  void AddEntry(Sequence& sequence, uint32_t group, BlockId block);
  void EmitCopy(uint32_t group, BlockId source, BlockId destination, uint32_t tokens);
  uint64_t Headroom(const WorkerState& worker, uint64_t promised = 0) const;
  uint64_t OpenRoom(const WorkerState& worker) const;
  uint64_t ClaimedBeside(const WorkerState& worker) const;
  uint64_t AvailableToAny() const;
  const Sequence* OldestWaiter(uint64_t before_serial);
  void AddWaiter(Sequence& sequence);
  void RemoveWaiter(const Sequence& sequence);
  Error ShortageError(const Shortage& shortage) const;
  BlockId TakeBlock(uint32_t group);
  BlockId NextVictim(bool only_own);
  BlockId EvictOne(bool only_own);
  bool EvictPlainTip(BlockId victim);
  size_t TakePlainVictims(std::span<BlockId> taken);
  // Evicts blocks into a table of the worker, in a plain pool.
  void TakeVictims(std::span<BlockId> taken);
  bool FreeOpenVictim();
  bool IsNeeded(BlockId block) const;

  // --- core_claims.cc ---
  uint64_t BlocksPromised(const BeginOp& op) const;
  uint64_t ShareOf(const Sequence& member) const;
  uint64_t WantedBy(const Claim& claim) const;
  void UpdateClaim(const std::shared_ptr<Claim>& claim, uint64_t taken);
  void SetClaim(Claim& claim, uint64_t wanted, uint64_t remaining);
  void LeaveClaim(Sequence& sequence);
  bool GiveUpKept(WorkerSlot worker);
  void FitClaims();

  // --- core_commit.cc, core_publish.cc, core_variants.cc ---
  Error Commit(const CommitOp& op);
  void CommitTo(Sequence& sequence, uint32_t committed);
  void SealNext(Sequence& sequence);
  bool SealPlainTip(Sequence& sequence);
  void AddSealed(Sequence& sequence, NodeId node, bool new_node);
  void MergeInto(Sequence& sequence, NodeId node);
  void Publish(BlockId block, WorkerSlot worker);
  void PublishNode(NodeId node, WorkerSlot worker);
  void PublishVariant(NodeId node, BlockId block, WorkerSlot worker);
  void SwapVariantIn(NodeId node, WorkerSlot worker);
  void Remap(BlockId from, BlockId to, WorkerSlot worker, uint32_t index, Sequence* sealer);
  void ApplyRetention(const Sequence& sequence, BlockId block, uint32_t index);
  void LeaveWindows(Sequence& sequence);
  // Public blocks stay while another worker's copies, not complete, have something below them.
  void GuardVariants(NodeId node);
  void SetVariant(NodeId node, NodeVariant variant);
  void RemoveVariant(NodeId node, WorkerSlot worker);
  // The worker's variant less one block.
  void ShrinkVariant(NodeId node, WorkerSlot worker, uint32_t group);

  // --- core_uses.cc ---
  // The sequence's path ends at `node` from now on.
  void StandOn(Sequence& sequence, NodeId node);
  // Its path is gone.
  void LeavePath(Sequence& sequence);
  void CountStanding(NodeId node, uint32_t delta);
  void OnBlockingChanged(const Block& block, bool blocking) override;
  void OnClosedChanged(const Block& block) override;
  // Uses of a block, with what follows for leaves.
  void Ref(BlockId block, WorkerSlot worker);
  void Unref(BlockId block, WorkerSlot worker, StepNumber step);
  void Hold(BlockId block);
  void Unhold(BlockId block);

  // --- core_content.cc ---
  void WantChecksum(BlockId block);

  // The content left the tree, or the block is about to be given away.
  void ForgetChecksum(BlockId block) {
    if (!pool_.Get(block).Has(kChecksumFlag)) return;
    checks_.Forget(block);
    pool_.Mut(block).Set(kChecksumFlag, false);
  }

  void SampleHit(BlockId block);
  AuditFinding TakeOutBad(BlockId block);

  // --- core_fork.cc, core_truncate.cc, core_release.cc ---
  Error Fork(const ForkOp& op);
  Error CheckFork(const ForkOp& op, const Sequence& parent);
  void AddChild(Sequence& parent, SequenceHandle handle, const SharedDigests& digests,
                std::span<const BlockId> tails);
  Error Truncate(const TruncateOp& op);
  BlockId LeftAt(const Sequence& sequence, uint32_t group, uint32_t index) const;
  uint64_t TakenBack(const Sequence& sequence, uint32_t length) const;
  Error CheckWindow(const Sequence& sequence, uint32_t length);
  Error CheckTaken(const Sequence& sequence, uint32_t length);
  void ReattachWindow(Sequence& sequence, uint32_t length);
  void Shorten(Sequence& sequence, uint32_t length);
  static SharedDigests CutDigests(const SharedDigests& digests, uint32_t length);
  Error Finish(const FinishOp& op);
  void ReleaseEntry(Sequence& sequence, uint32_t group, uint32_t index);
  void ReleaseTable(Sequence& sequence, uint32_t from_index);
  void ReleasePlainTable(Sequence& sequence, uint32_t from_index);
  void EndSequence(Sequence& sequence, bool drop);
  NodeId LastPathNode(const Sequence& sequence) const;
  bool DropNode(NodeId node, const Sequence& sequence);

  // --- core_remove.cc ---
  // Takes a block out of the tree; it is free once nobody holds it.
  void TakeOut(BlockId block);
  void EvictBlock(BlockId block);
  bool StoodFor(NodeId node, uint32_t group) const;
  // Removes a childless node of which a block that every hit needs is gone.
  void RemoveNode(NodeId node);
  void LeaveDead(BlockId block);
  uint64_t FreeDead();
  void DropPartialVariants(NodeId node);
  void RemoveGhosts(NodeId node);
  uint64_t TakeOutNodes(std::span<const NodeId> nodes, EvictionReason reason);
  uint64_t RemoveSubtrees(const std::vector<NodeId>& tops, EvictionReason reason);
  void TaintSequences(const absl::flat_hash_set<NodeId>& removed);
  void CountEviction(const Block& block, EvictionReason reason, uint64_t times = 1);

  // --- core_lease.cc, core_lease_end.cc ---
  // LEASE_EXPIRED also for a caller of another tenant, who cannot tell the two apart (P14).
  absl::StatusOr<WorkerState*> FindLease(const LeaseId& lease, Epoch epoch, CallerTenant caller);
  void EndLease(WorkerState& worker);
  void DropPending(WorkerState& worker, std::vector<BlockId>& written);
  void QuarantineBlocks(const WorkerState& worker, const std::vector<BlockId>& written);
  void CheckQuarantines();
  WorkerSlot NewSlot();
  // In the order of their begins.
  static std::vector<Sequence*> BySerial(const WorkerState& worker);

  // --- core_pins.cc ---
  absl::StatusOr<NodeId> RootOf(const PrefixSelector& prefix) const;
  void EndPin(std::map<std::string, Pin>::iterator pin);
  void UnpinRemoved();

  SequenceView ViewOf(const Sequence& sequence, bool tables) const;

  uint32_t groups() const { return groups_.count(); }

  bool IsWindow(uint32_t group) const { return groups_.IsWindow(group); }

  uint32_t BlocksFor(uint64_t tokens) const {
    return static_cast<uint32_t>((tokens + options_.block_tokens - 1) >> block_shift_);
  }

  // Key of the content that a sequence has at a block index it still has tokens for.
  ContentView ContentAt(const Sequence& sequence, uint32_t index,
                        std::vector<DigestMark>& marks) const;

  const EngineOptions options_;
  const Clock& clock_;
  const EngineSeams seams_;
  // block_tokens is a power of two: this one.
  const uint32_t block_shift_;
  const PoolGroups groups_;

  Journal journal_;
  BlockPool pool_;
  PrefixTree tree_;
  WindowProtection windows_;

  TimePoint start_{};
  TimePoint now_{};
  SequenceStore sequence_store_;
  // By slot; slot 0 is unused.
  std::vector<std::unique_ptr<WorkerState>> workers_;
  absl::flat_hash_map<LeaseId, WorkerSlot> leases_;
  absl::flat_hash_map<std::string, WorkerSlot> worker_names_;
  uint64_t next_lease_number_ = 1;
  TimePoint next_lease_deadline_ = TimePoint::max();
  // Of the maintenance, if it has a heartbeat.
  TimePoint last_beat_ = TimePoint::max();
  // Model fingerprints of all workers so far that may have content.
  absl::flat_hash_set<std::string> fingerprints_;
  uint64_t next_serial_ = 1;
  uint64_t live_sequences_ = 0;
  // Blocks promised to all claims, and those that claims lost and get back first.
  uint64_t claimed_ = 0;
  uint64_t owed_ = 0;
  // Waiting sequences by begin order.
  std::map<uint64_t, Waiter> waiters_;
  std::map<std::string, Pin> pins_;
  uint64_t next_pin_ = 1;
  TimePoint next_pin_deadline_ = TimePoint::max();
  std::vector<Quarantine> quarantines_;
  bool draining_ = false;
  std::vector<uint64_t> ended_leases_;

  // Sequences whose path ends at a node (only kept where no group sees everything).
  absl::flat_hash_map<NodeId, uint32_t> standing_;
  // Nodes whose blockers became none or some, waiting to be looked at: a chain may be long.
  std::vector<NodeId> blocking_queue_;
  bool blocking_runs_ = false;

  // The step that runs now.
  WorkerState* worker_ = nullptr;
  StepNumber step_ = 0;
  StepResult* out_ = nullptr;
  uint32_t operation_ = 0;
  // Of the advance that runs now: those that seal a block or take one.
  std::vector<Sequence*> leaving_;

  ContentChecks checks_;
  uint64_t hits_since_sample_ = 0;
  EngineCounters counters_;
  // Behind pointers, so that the journal may name them.
  absl::flat_hash_map<std::string, std::unique_ptr<TenantStats>> tenants_;
  PowerHistogram operations_per_step_;
  PowerHistogram block_lifetime_ns_;
  PowerHistogram idle_before_eviction_ns_;
  PowerHistogram reuse_gap_ns_;
};

// Calls visit(group, index, block) for every block that a sequence with this hit holds: all of full
// groups, those in the window of others.
template <typename Visit>
void EngineCore::VisitHitBlocks(const Hit& hit, WorkerSlot worker, Visit visit) const {
  const uint32_t length = hit.Tokens(options_.block_tokens);
  for (uint32_t group = 0; group < groups(); ++group) {
    uint32_t first = groups_.FirstNeeded(group, length);
    // Blocks kept by slack count while they are there without a gap.
    const uint32_t kept = groups_.FirstNeeded(group, length, options_.window_slack_tokens);
    first = std::min(first, hit.whole_blocks);
    while (first > kept && VisibleBlock(hit.path[first - 1], group, worker) != kNoBlock) --first;
    for (uint32_t i = 0; i < hit.whole_blocks; ++i) {
      const bool needed = !IsWindow(group) || i >= first;
      visit(group, i, needed ? VisibleBlock(hit.path[i], group, worker) : kNoBlock);
    }
  }
}

}  // namespace quire

#endif  // QUIRE_CACHE_SERVICE_ENGINE_ENGINE_CORE_H_
