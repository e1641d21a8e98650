// Questions that change nothing.
#include <algorithm>

#include "worker/client/cache_client.h"
#include "worker/client/connection.h"

namespace quire::client {

absl::StatusOr<std::vector<SequenceState>> CacheClient::FetchTables(
    std::span<const SequenceHandle> sequences) {
  v1::GetBlockTableRequest request;
  request.set_lease_id(info_.lease_id);
  request.set_epoch(info_.epoch);
  request.mutable_sequences()->Assign(sequences.begin(), sequences.end());
  auto response = connection_->GetBlockTable(request, options_.call_timeout);
  if (!response.ok()) return response.status();
  std::vector<SequenceState> states;
  for (const v1::SequenceTable& table : response->tables()) {
    SequenceState& state = states.emplace_back();
    state.committed = table.committed();
    state.length = table.length();
    state.reserved = table.reserved();
    state.tables.resize(info_.groups.size());
    for (const v1::TableRun& run : table.groups()) {
      if (run.group() >= state.tables.size()) continue;
      auto& blocks = state.tables[run.group()];
      blocks.resize(run.first_index() + static_cast<size_t>(run.blocks_size()), kNoBlock);
      std::transform(run.blocks().begin(), run.blocks().end(), blocks.begin() + run.first_index(),
                     [](uint32_t block) { return static_cast<BlockIndex>(block); });
    }
  }
  return states;
}

absl::StatusOr<uint32_t> CacheClient::PeekPrefix(std::span<const TokenId> tokens,
                                                 const Namespace& name_space) {
  v1::PeekPrefixRequest request;
  request.set_pool(info_.pool);
  request.set_model_fingerprint(options_.model_fingerprint);
  request.mutable_namespace_()->set_adapter(name_space.adapter);
  request.mutable_namespace_()->set_salt(name_space.salt);
  request.mutable_namespace_()->set_tenant(name_space.tenant);
  request.mutable_namespace_()->set_weights_version(name_space.weights_version);
  request.mutable_tokens()->Assign(tokens.begin(), tokens.end());
  auto response = connection_->PeekPrefix(request, options_.call_timeout);
  if (!response.ok()) return response.status();
  return response->tiers().empty() ? 0 : response->tiers(0).reusable_tokens();
}

}  // namespace quire::client
