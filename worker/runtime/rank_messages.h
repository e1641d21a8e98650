// What the scheduler's process tells the processes of the other ranks, as lines of JSON.
//
// One decider: ranks get the tables and copy orders of the answers as they are, and choose nothing.
// Each message is answered by one line once it is done, which is that rank's completion marker.
#ifndef QUIRE_WORKER_RUNTIME_RANK_MESSAGES_H_
#define QUIRE_WORKER_RUNTIME_RANK_MESSAGES_H_

#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "worker/client/answer.h"
#include "worker/client/attachment.h"
#include "worker/model/paged_kv.h"
#include "worker/runtime/launch_order.h"

namespace quire::runtime {

// {"map": {..}}: the region of this rank and what lies in it.
nlohmann::json MapMessage(const client::PoolInfo& info, const client::RegionGrant& grant);
// {"copies": [[group, source, destination, tokens], ..]}
nlohmann::json CopyMessage(std::span<const client::CopyOrder> orders);
// {"launch": {"tokens": [..], "sequences": [[first_row, rows, first_position], ..],
//             "tables": [[[..] per group] per sequence]}}
nlohmann::json LaunchMessage(const model::LaunchBatch& batch,
                             std::span<const model::SequenceTables> tables);

struct MapOrder {
  client::PoolInfo info;
  client::RegionGrant grant;
};

// The reverse, of the value behind the message's name.
MapOrder ToMapOrder(const nlohmann::json& value);
std::vector<client::CopyOrder> ToCopyOrders(const nlohmann::json& value);
LaunchOrder ToLaunchOrder(const nlohmann::json& value);

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_RANK_MESSAGES_H_
