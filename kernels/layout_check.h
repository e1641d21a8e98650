// What kv_layout.cc and its checks share.
#ifndef QUIRE_KERNELS_LAYOUT_CHECK_H_
#define QUIRE_KERNELS_LAYOUT_CHECK_H_

#include "kernels/kv_layout.h"

namespace quire::kernels {

Status CheckLayoutShape(const PagedKvLayout& layout);
Status CheckScaleKind(const PagedKvLayout& layout);

// The strides of the layout's preset, from its shape and block_bytes.
void SetPresetStrides(PagedKvLayout& layout);

}  // namespace quire::kernels

#endif  // QUIRE_KERNELS_LAYOUT_CHECK_H_
