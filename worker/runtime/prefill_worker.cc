#include "worker/runtime/prefill_worker.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "worker/runtime/paged_pool.h"

namespace quire::runtime {

absl::StatusOr<std::unique_ptr<PrefillWorker>> PrefillWorker::Create(
    client::CacheClient& client, model::Transformer& model, uint32_t chunk_tokens,
    const model::KernelChoice& kernels) {
  std::unique_ptr<PrefillWorker> worker(new PrefillWorker(client, model, chunk_tokens, kernels));
  if (absl::Status status = worker->MapPool(); !status.ok()) return status;
  client.set_copy_executor([raw = worker.get()](std::span<const client::CopyOrder> orders) {
    return ExecuteCopies(*raw->kv_, orders);
  });
  return worker;
}

absl::Status PrefillWorker::MapPool() {
  absl::StatusOr<std::unique_ptr<model::PagedKv>> kv =
      MapPagedKv(client_.pool(), client_.blocks(), model_.config(), kernels_);
  if (!kv.ok()) return kv.status();
  kv_ = *std::move(kv);
  return absl::OkStatus();
}

// The server forgot this worker, and with it all that was kept.
absl::Status PrefillWorker::StartOver(const absl::Status& cause) {
  kept_.clear();
  kv_.reset();
  if (absl::Status over = leases_.Ended(cause); !over.ok()) return over;
  std::this_thread::sleep_for(leases_.pause());
  if (absl::Status status = client_.Reattach(); !status.ok()) return status;
  return MapPool();
}

absl::Status PrefillWorker::Compute(uint64_t id, const std::vector<TokenId>& prompt) {
  absl::Status status = TryToCompute(id, prompt);
  while (client::EndsLease(status)) {
    if (status = StartOver(status); !status.ok()) return status;
    status = TryToCompute(id, prompt);
  }
  if (status.ok()) leases_.Fruit();
  return status;
}

absl::Status PrefillWorker::TryToCompute(uint64_t id, const std::vector<TokenId>& prompt) {
  const client::SequenceHandle sequence = ++last_handle_;
  client::Step begin;
  const client::OperationId operation = begin.Begin({.sequence = sequence, .tokens = prompt});
  absl::StatusOr<client::StepAnswer> answer = Call(std::move(begin));
  if (!answer.ok()) return answer.status();
  if (const auto* failure = answer->FailureOf(operation)) return ToStatus(failure->error);
  const client::BeginResult* result = answer->BeginOf(operation);
  kept_[id] = sequence;
  if (absl::Status status = Launch(sequence, prompt, result->reused_tokens); !status.ok()) {
    return status;
  }
  const auto length = static_cast<uint32_t>(prompt.size());
  client::Step commit;
  commit.Commit(sequence, length, length);
  if (answer = Call(std::move(commit)); !answer.ok()) return answer.status();
  // In lock-step mode this call says that the commit's step is complete; its answer, that the
  // prompt is public.
  return Call(client::Step()).status();
}

absl::Status PrefillWorker::Launch(client::SequenceHandle sequence,
                                   const std::vector<TokenId>& prompt, uint32_t first) {
  const client::SequenceState* state = client_.tables().Find(sequence);
  const model::SequenceTables tables(state->tables.begin(), state->tables.end());
  std::vector<float> logits;
  for (uint32_t position = first; position < prompt.size();) {
    const auto rows = std::min(chunk_tokens_, static_cast<uint32_t>(prompt.size()) - position);
    model::LaunchBatch batch;
    batch.Add(static_cast<int32_t>(position), prompt.data() + position, static_cast<int32_t>(rows));
    if (absl::Status status = kv_->Prepare(batch, {&tables, 1}); !status.ok()) return status;
    if (absl::Status status = model_.Forward(batch, *kv_, logits); !status.ok()) return status;
    position += rows;
    computed_tokens_ += rows;
  }
  return client_.CheckLease();
}

absl::Status PrefillWorker::Release(uint64_t id) {
  const auto found = kept_.find(id);
  if (found == kept_.end()) return absl::OkStatus();
  client::Step step;
  step.Finish(found->second);
  kept_.erase(found);
  return Finish(std::move(step));
}

absl::Status PrefillWorker::ReleaseAll() {
  client::Step step;
  for (const auto& [id, sequence] : kept_) step.Finish(sequence);
  kept_.clear();
  return step.empty() ? absl::OkStatus() : Finish(std::move(step));
}

absl::Status PrefillWorker::Finish(client::Step step) {
  const absl::Status status = Call(std::move(step)).status();
  return client::EndsLease(status) ? StartOver(status) : status;
}

absl::StatusOr<client::StepAnswer> PrefillWorker::Call(client::Step step) {
  absl::StatusOr<client::StepNumber> number = client_.Submit(std::move(step));
  if (!number.ok()) return number.status();
  absl::StatusOr<client::AppliedStep> applied = client_.Wait();
  if (!applied.ok()) return applied.status();
  return std::move(applied->answer);
}

}  // namespace quire::runtime
