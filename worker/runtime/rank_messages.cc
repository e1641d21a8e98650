#include "worker/runtime/rank_messages.h"

#include <utility>

namespace quire::runtime {

using nlohmann::json;

json MapMessage(const client::PoolInfo& info, const client::RegionGrant& grant) {
  json groups = json::array();
  for (const client::LayerGroup& group : info.groups) {
    groups.push_back({{"window", group.window_tokens}, {"layers", group.layers}});
  }
  return {{"map",
           {{"rank", grant.rank},
            {"path", grant.path},
            {"blocks_offset", grant.blocks_offset},
            {"bytes", grant.bytes},
            {"layout_id", grant.layout_id},
            {"layout_version", grant.layout_version},
            {"lease_word_offset", grant.lease_word_offset},
            {"lease_word", grant.lease_word},
            {"lock_offset", grant.lock_offset},
            {"epoch", grant.epoch},
            {"block_bytes", info.block_bytes},
            {"block_count", info.block_count},
            {"block_tokens", info.block_tokens},
            {"groups", std::move(groups)}}}};
}

MapOrder ToMapOrder(const json& value) {
  MapOrder order;
  client::PoolInfo& info = order.info;
  info.epoch = value["epoch"].get<uint64_t>();
  info.block_bytes = value["block_bytes"].get<uint64_t>();
  info.block_count = value["block_count"].get<uint32_t>();
  info.block_tokens = value["block_tokens"].get<uint32_t>();
  for (const json& group : value["groups"]) {
    info.groups.push_back(
        {group["window"].get<uint32_t>(), group["layers"].get<std::vector<uint32_t>>()});
  }
  order.grant = {.rank = value["rank"].get<uint32_t>(),
                 .path = value["path"].get<std::string>(),
                 .blocks_offset = value["blocks_offset"].get<uint64_t>(),
                 .bytes = value["bytes"].get<uint64_t>(),
                 .layout_id = value["layout_id"].get<uint64_t>(),
                 .layout_version = value["layout_version"].get<uint32_t>(),
                 .lease_word_offset = value["lease_word_offset"].get<uint64_t>(),
                 .lease_word = value["lease_word"].get<uint64_t>(),
                 .lock_offset = value["lock_offset"].get<uint64_t>(),
                 .epoch = info.epoch,
                 .block_bytes = info.block_bytes,
                 .block_count = info.block_count};
  return order;
}

json CopyMessage(std::span<const client::CopyOrder> orders) {
  json copies = json::array();
  for (const client::CopyOrder& order : orders) {
    copies.push_back({order.group, order.source, order.destination, order.tokens});
  }
  return {{"copies", std::move(copies)}};
}

std::vector<client::CopyOrder> ToCopyOrders(const json& value) {
  std::vector<client::CopyOrder> orders;
  for (const json& order : value) {
    orders.push_back({order[0].get<uint32_t>(), order[1].get<client::BlockIndex>(),
                      order[2].get<client::BlockIndex>(), order[3].get<uint32_t>()});
  }
  return orders;
}

json LaunchMessage(const model::LaunchBatch& batch, std::span<const model::SequenceTables> tables) {
  json sequences = json::array();
  for (const model::LaunchSequence& sequence : batch.sequences) {
    sequences.push_back({sequence.first_row, sequence.rows, sequence.first_position});
  }
  json ids = json::array();
  for (const model::SequenceTables& of_sequence : tables) {
    json groups = json::array();
    for (const std::span<const int32_t> table : of_sequence) {
      groups.push_back(std::vector<int32_t>(table.begin(), table.end()));
    }
    ids.push_back(std::move(groups));
  }
  return {{"launch",
           {{"tokens", batch.tokens},
            {"sequences", std::move(sequences)},
            {"tables", std::move(ids)}}}};
}

LaunchOrder ToLaunchOrder(const json& value) {
  LaunchOrder order;
  order.batch.tokens = value["tokens"].get<std::vector<model::TokenId>>();
  for (const json& sequence : value["sequences"]) {
    order.batch.sequences.push_back({.first_row = sequence[0].get<int32_t>(),
                                     .rows = sequence[1].get<int32_t>(),
                                     .first_position = sequence[2].get<int32_t>()});
  }
  order.ids = value["tables"].get<std::vector<std::vector<std::vector<int32_t>>>>();
  return order;
}

}  // namespace quire::runtime
