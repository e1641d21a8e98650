// Does a block hold the bytes it is filed under? (design: content checks, E10)
#include "absl/strings/str_cat.h"
#include "cache_service/engine/engine_core.h"

namespace quire {

void EngineCore::WantChecksum(BlockId block) {
  if (seams_.contents == nullptr) return;
  checks_.Add(block);
  pool_.Mut(block).Set(kChecksumFlag, true);
}

void EngineCore::SampleHit(BlockId block) {
  if (options_.content_sample == 0 || !pool_.Get(block).Has(kChecksumFlag)) return;
  if (++hits_since_sample_ < options_.content_sample) return;
  hits_since_sample_ = 0;
  checks_.Sample(block);
}

std::vector<ContentCheck> EngineCore::TakeContentChecks(bool all) {
  ApplyDue();
  std::vector<ContentCheck> checks =
      all ? checks_.All() : checks_.Take(options_.content_checks_per_run);
  for (ContentCheck& check : checks) check.group = pool_.Get(check.block).group;
  return checks;
}

std::vector<AuditFinding> EngineCore::FinishContentChecks(const std::vector<ContentCheck>& checks) {
  ApplyDue();
  std::vector<AuditFinding> findings;
  for (const ContentCheck& check : checks) {
    const ContentChecks::Outcome outcome = checks_.Finish(check);
    if (outcome == ContentChecks::Outcome::kGone) continue;
    ++counters_.content_checks;
    if (outcome == ContentChecks::Outcome::kDifferent) {
      findings.push_back(TakeOutBad(check.block));
    }
  }
  return findings;
}

// A bad block leaves the tree with its subtree; every sequence that holds it is told.
AuditFinding EngineCore::TakeOutBad(BlockId block) {
  ++counters_.content_mismatches;
  const uint32_t group = pool_.Get(block).group;
  const NodeId node = pool_.Get(block).node;
  const uint32_t index = tree_.Get(node).depth;
  pool_.Mut(block).Set(kBadFlag, true);
  for (const auto& worker : workers_) {
    if (worker == nullptr) continue;
    for (const auto& [handle, sequence] : worker->sequences) {
      const std::vector<BlockId>& table = sequence->tables[group];
      if (index >= table.size() || table[index] != block) continue;
      worker->notices.push_back(
          {handle, MakeError(Reason::kContentMismatch,
                             absl::StrCat("block ", Index(block), " at index ", index,
                                          " does not hold the content it is filed under"),
                             {{"sequence", handle}, {"block", Index(block)}, {"index", index}})});
    }
  }
  RemoveSubtrees({node}, EvictionReason::kBad);
  UnpinRemoved();
  FitClaims();
  return {0, block, "tree",
          absl::StrCat("the bytes of block ", Index(block), " (position ", index,
                       ") do not match their checksum")};
}

}  // namespace quire
