#include "tests/support/tagged_memory.h"

namespace quire::testing {

ContentId ContentIds::Root(const std::string& namespace_key) {
  ContentId& id = roots_[namespace_key];
  if (id == 0) id = next_++;
  return id;
}

ContentId ContentIds::Next(ContentId before, TokenId token, const std::string& extra) {
  ContentId& id = nodes_[{before, token, extra}];
  if (id == 0) id = next_++;
  return id;
}

void TaggedMemory::Execute(const CopyOrder& order) {
  for (uint32_t slot = 0; slot < order.tokens; ++slot) {
    Write(order.destination, slot, At(order.source, slot));
  }
}

}  // namespace quire::testing
