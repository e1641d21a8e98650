#include "cache_service/memory/block_checksums.h"

#include <array>
#include <utility>

#include "cache_service/base/error.h"
#include "kernels/hash.h"

namespace quire {

absl::StatusOr<std::unique_ptr<BlockChecksums>> BlockChecksums::Create(const PoolMemory& memory,
                                                                       const PoolLayout& layout) {
  auto backend = kernels::CreateBackend("cpu", {.threads = 1});
  if (!backend.ok()) {
    return ToStatus(MakeError(Reason::kInvariantBroken, backend.status().message()));
  }
  return std::unique_ptr<BlockChecksums>(new BlockChecksums(memory, layout, std::move(*backend)));
}

BlockChecksums::BlockChecksums(const PoolMemory& memory, const PoolLayout& layout,
                               std::unique_ptr<kernels::Backend> backend)
    : memory_(memory), layout_(layout), backend_(std::move(backend)), bytes_(layout.block_bytes) {
  for (const kernels::PagedKvLayout& group : layout.group_layouts) {
    seeds_.push_back(kernels::ChecksumSeed(group, seeds_.size()));
  }
}

BlockContents::Checksum BlockChecksums::ChecksumOf(BlockId block, uint32_t group) {
  MutexLock lock(mutex_);
  Checksum sum;
  for (uint32_t rank = 0; rank < memory_.ranks(); ++rank) {
    if (!AddRank(rank, block, group, sum)) return {};
  }
  return sum;
}

bool BlockChecksums::AddRank(uint32_t rank, BlockId block, uint32_t group, Checksum& sum) {
  const uint64_t offset = uint64_t{Index(block)} * layout_.block_bytes;
  if (!memory_.Read(rank, offset, bytes_).ok()) return false;
  // The block's bytes, seen as a pool of one block.
  kernels::KvPoolView view;
  view.base = bytes_.data();
  view.bytes = static_cast<int64_t>(bytes_.size());
  view.num_blocks = 1;
  view.layout = layout_.group_layouts[group];
  const std::array<kernels::ChecksumOrder, 1> whole = {
      kernels::ChecksumOrder{.block = 0, .slot_begin = 0, .slot_end = view.layout.block_tokens()}};
  std::array<kernels::ChecksumSums, 1> sums{};
  if (!backend_->ChecksumBlocks(view, seeds_[group], whole, sums).ok()) return false;
  // Chained, so that two ranks that swap their bytes are noticed.
  sum.low = kernels::Mix64(sum.low + kernels::kGolden) ^ sums[0][0];
  sum.high = kernels::Mix64(sum.high + kernels::kGolden) ^ sums[0][1];
  return true;
}

}  // namespace quire
