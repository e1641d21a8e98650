#include "cache_service/rpc/step_runner.h"

#include <utility>

namespace quire {

absl::Status StepRunner::Run(const PoolRegistry& pools, const v1::StepBatch& batch,
                             const Caller& caller, v1::StepAnswer* answer) {
  absl::StatusOr<LeasedPool> leased = pools.FindByLease(batch.lease_id(), batch.epoch());
  if (!leased.ok()) return leased.status();
  const uint32_t limit = leased->engine->options().max_operations_per_step;
  if (absl::Status status = decoder_.Decode(batch, caller, limit); !status.ok()) return status;
  const Clock& clock = leased->pool->clock();
  const TimePoint start = clock.Now();
  const auto result = leased->engine->Step({.lease = std::move(leased->lease),
                                            .epoch = batch.epoch(),
                                            .step = batch.step(),
                                            .applied_step = batch.applied_step(),
                                            .completed_step = batch.completed_step(),
                                            .all_or_nothing = batch.all_or_nothing(),
                                            .operations = decoder_.operations(),
                                            .caller = caller.tenant});
  leased->pool->step_latency().Record(clock.Now() - start);
  if (!result.ok()) return result.status();
  FillAnswer(**result, answer);
  return absl::OkStatus();
}

}  // namespace quire
