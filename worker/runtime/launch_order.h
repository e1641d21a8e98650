// A launch with tables of its own, which later answers do not change.
#ifndef QUIRE_WORKER_RUNTIME_LAUNCH_ORDER_H_
#define QUIRE_WORKER_RUNTIME_LAUNCH_ORDER_H_

#include <cstdint>
#include <vector>

#include "worker/model/paged_kv.h"

namespace quire::runtime {

struct LaunchOrder {
  model::LaunchBatch batch;
  // By sequence of the batch and group.
  std::vector<std::vector<std::vector<int32_t>>> ids;

  // Views of `ids`.
  std::vector<model::SequenceTables> tables() const {
    std::vector<model::SequenceTables> views;
    for (const auto& of_sequence : ids) views.emplace_back(of_sequence.begin(), of_sequence.end());
    return views;
  }
};

}  // namespace quire::runtime

#endif  // QUIRE_WORKER_RUNTIME_LAUNCH_ORDER_H_
