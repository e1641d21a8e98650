#include "tests/simulation/device.h"

#include <algorithm>
#include <utility>

namespace quire::simulation {
namespace {

// What a group's slot holds for a content: bytes of one group never pass for those of another.
ContentId InGroup(ContentId content, uint32_t group) { return content + group; }

}  // namespace

Device::Device(const Plan& plan, uint32_t process, std::string name, Random& random, Judge& judge)
    : groups_(plan.engine.groups),
      block_tokens_(plan.engine.block_tokens),
      stall_(plan.chaos.device_stall),
      process_(process),
      name_(std::move(name)),
      random_(random),
      judge_(judge),
      done_(plan.ranks),
      stalled_until_(plan.ranks) {}

void Device::Open(std::shared_ptr<PoolMemory> memory, uint64_t lease_number, bool maps) {
  memory_ = std::move(memory);
  lease_number_ = lease_number;
  maps_ = maps;
  marked_ = 0;
  finished_.clear();
}

void Device::Launch(Kernel kernel) { queue_.push_back({std::move(kernel), nullptr}); }

void Device::Apply(std::shared_ptr<const StepResult> answer) {
  queue_.push_back({{}, std::move(answer)});
}

void Device::Run(Tick now) {
  for (uint32_t rank = 0; rank < done_.size(); ++rank) {
    if (stalled_until_[rank] > now) continue;
    if (random_.OneIn(stall_)) stalled_until_[rank] = now + random_.Below(150);
    size_t most = random_.Below(24);
    while (most-- > 0 && done_[rank] < queue_.size()) RunOne(rank, queue_[done_[rank]++]);
  }
  size_t finished = *std::min_element(done_.begin(), done_.end());
  for (size_t& done : done_) done -= finished;
  for (; finished > 0; --finished) {
    const Work& work = queue_.front();
    if (work.answer != nullptr) {
      marked_ = work.answer->step;
    } else if (work.kernel.counts) {
      finished_.push_back(work.kernel.sequence);
    }
    queue_.pop_front();
  }
}

void Device::RunOne(uint32_t rank, const Work& work) {
  if (work.answer == nullptr) {
    RunKernel(rank, work.kernel);
    return;
  }
  if (!maps_) return;
  for (const CopyOrder& order : work.answer->copies) memory_->Copy(rank, order);
}

void Device::RunKernel(uint32_t rank, const Kernel& kernel) {
  if (kernel.tables == nullptr) return;
  for (uint32_t group = 0; group < groups_.size(); ++group) {
    WriteGroup(rank, kernel, group);
    ReadGroup(rank, kernel, group);
  }
}

void Device::WriteGroup(uint32_t rank, const Kernel& kernel, uint32_t group) {
  const std::vector<BlockId>& table = (*kernel.tables)[group];
  for (uint32_t position = kernel.first; position < kernel.drafts_end; ++position) {
    Slot& slot = memory_->At(rank, table[position / block_tokens_], position % block_tokens_);
    const bool draft = position >= kernel.end;
    const TokenId token = draft ? 0xFFFFFFFF : kernel.text->tokens[position];
    const ContentId content = draft ? ~kernel.sequence : kernel.text->contents[position];
    slot = {InGroup(content, group), kernel.sequence, process_, position, token};
  }
}

// The first token written sees the most: from there on everything up to the last one is read.
void Device::ReadGroup(uint32_t rank, const Kernel& kernel, uint32_t group) {
  const std::vector<BlockId>& table = (*kernel.tables)[group];
  const uint32_t window = groups_[group].window_tokens;
  const uint32_t behind = kernel.first + 1;
  for (uint32_t position = window > 0 && behind > window ? behind - window : 0;
       position < kernel.end; ++position) {
    const Slot& slot = memory_->At(rank, table[position / block_tokens_], position % block_tokens_);
    if (slot.content == InGroup(kernel.text->contents[position], group)) continue;
    Report(rank, kernel, group, position, slot);
    return;
  }
}

void Device::Report(uint32_t rank, const Kernel& kernel, uint32_t group, uint32_t position,
                    const Slot& found) {
  // A worker whose lease word is revoked throws the result away.
  if (memory_->IsRevoked(lease_number_)) return;
  judge_.Violate("a kernel of ", name_, " (process ", process_, ", rank ", rank, ") for sequence ",
                 kernel.sequence, " reads block ",
                 Index((*kernel.tables)[group][position / block_tokens_]), " of group ", group,
                 " for position ", position, ", token ", kernel.text->tokens[position],
                 ", and finds what process ", found.process, " wrote for sequence ", found.sequence,
                 ", position ", found.position, ", token ", found.token);
}

}  // namespace quire::simulation
