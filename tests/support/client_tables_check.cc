// What must be true of a worker's tables and bytes.
#include <algorithm>

#include "cache_service/engine/layer_groups.h"
#include "gtest/gtest.h"
#include "tests/support/client_tables.h"

namespace quire::testing {

uint32_t ClientTables::FirstReadableBlock(uint32_t group, uint32_t length) const {
  // The kernel of the last token reads the window that ends with it.
  return FirstNeededBlock(options_.groups[group].window_tokens, length == 0 ? 0 : length - 1,
                          options_.block_tokens);
}

void ClientTables::ExpectBytes() const {
  for (const auto& [handle, sequence] : sequences_) {
    for (uint32_t group = 0; group < sequence.groups.size(); ++group) {
      const std::vector<BlockId>& blocks = sequence.groups[group].blocks;
      EXPECT_EQ(blocks.size(), BlocksFor(std::max(sequence.length, sequence.reserved)))
          << "table of sequence " << handle << ", group " << group;
      const uint32_t first = FirstReadableBlock(group, sequence.length) * options_.block_tokens;
      for (uint32_t position = first; position < sequence.length; ++position) {
        const uint32_t index = position / options_.block_tokens;
        if (index >= blocks.size() || blocks[index] == kNoBlock) {
          // The window of the next token may already have passed this block.
          if (index < blocks.size() && options_.groups[group].is_window()) continue;
          ADD_FAILURE() << "sequence " << handle << " has no block for position " << position;
          break;
        }
        const SlotTag expected{sequence.contents[position], group};
        if (memory_.At(blocks[index], position % options_.block_tokens) == expected) continue;
        ADD_FAILURE() << "sequence " << handle << ", group " << group << ", position " << position
                      << ": block " << Index(blocks[index]) << " holds other bytes";
        break;
      }
    }
  }
}

void ClientTables::ExpectEqualTo(const std::vector<SequenceView>& views) const {
  EXPECT_EQ(views.size(), sequences_.size());
  for (const SequenceView& view : views) {
    if (!Has(view.handle)) {
      ADD_FAILURE() << "the server lists sequence " << view.handle;
      continue;
    }
    const ClientSequence& mine = At(view.handle);
    EXPECT_EQ(view.length, mine.length) << "sequence " << view.handle;
    EXPECT_EQ(view.reserved, mine.reserved) << "sequence " << view.handle;
    EXPECT_EQ(view.groups, mine.groups) << "sequence " << view.handle;
  }
}

}  // namespace quire::testing
