// What one rank is told is what the scheduler said.
#include "worker/runtime/rank_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quire::runtime {
namespace {

using testing::ElementsAre;

nlohmann::json Sent(const nlohmann::json& message) { return nlohmann::json::parse(message.dump()); }

TEST(RankMessagesTest, CarryTheGrantOfARegion) {
  client::PoolInfo info;
  info.epoch = 0xFEDCBA9876543210u;
  info.block_bytes = 4096;
  info.block_count = 77;
  info.block_tokens = 16;
  info.groups = {{0, {1, 3}}, {24, {0, 2}}};
  const client::RegionGrant grant{.rank = 1,
                                  .path = "/dev/shm/quire \"x\"",
                                  .blocks_offset = 8192,
                                  .bytes = 1 << 20,
                                  .layout_id = 0x8000000000000001u,
                                  .layout_version = 3,
                                  .lease_word_offset = 4100,
                                  .lease_word = 0xFFFFFFFFFFFFFFFFu,
                                  .lock_offset = 99,
                                  .epoch = info.epoch,
                                  .block_bytes = info.block_bytes,
                                  .block_count = info.block_count};
  const MapOrder order = ToMapOrder(Sent(MapMessage(info, grant))["map"]);
  EXPECT_EQ(order.grant.path, grant.path);
  EXPECT_EQ(order.grant.layout_id, grant.layout_id);
  EXPECT_EQ(order.grant.lease_word, grant.lease_word);
  EXPECT_EQ(order.grant.lock_offset, grant.lock_offset);
  EXPECT_EQ(order.grant.epoch, info.epoch);
  EXPECT_EQ(order.info.block_tokens, 16u);
  ASSERT_EQ(order.info.groups.size(), 2u);
  EXPECT_EQ(order.info.groups[1].window_tokens, 24u);
  EXPECT_THAT(order.info.groups[1].layers, ElementsAre(0, 2));
}

TEST(RankMessagesTest, CarryLaunchesAndCopiesInOrder) {
  model::LaunchBatch batch;
  const model::TokenId tokens[] = {9, 8, 7};
  batch.Add(4, tokens, 2);
  batch.Add(0, tokens + 2, 1);
  const std::vector<int32_t> ids[] = {{5, 6}, {-1, 7}, {3}, {4}};
  const std::vector<model::SequenceTables> tables = {{ids[0], ids[1]}, {ids[2], ids[3]}};
  const LaunchOrder order = ToLaunchOrder(Sent(LaunchMessage(batch, tables))["launch"]);
  EXPECT_EQ(order.batch.tokens, batch.tokens);
  ASSERT_EQ(order.batch.sequences.size(), 2u);
  EXPECT_EQ(order.batch.sequences[0].first_position, 4);
  EXPECT_EQ(order.batch.sequences[1].first_row, 2);
  EXPECT_THAT(order.ids[0][1], ElementsAre(-1, 7));
  EXPECT_EQ(order.tables()[1][0].data(), order.ids[1][0].data());
  const std::vector<client::CopyOrder> orders = {{0, 1, 2, 16}, {1, 2, 3, 4}};
  const auto copies = ToCopyOrders(Sent(CopyMessage(orders))["copies"]);
  ASSERT_EQ(copies.size(), 2u);
  EXPECT_EQ(copies[1].group, 1u);
  EXPECT_EQ(copies[1].source, 2);
  EXPECT_EQ(copies[0].tokens, 16u);
}

}  // namespace
}  // namespace quire::runtime
