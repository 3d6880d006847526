// Strided copies of vectors to another device's memory by copy engines, without multiprocessors.
#pragma once

#include <cstddef>
#include <vector>

#include "core/device/op.h"

namespace hctr::ops {

/// `count` segments of `bytes` bytes. Segment i is copied from address `from` + i * from_stride to address `to` + i *
/// to_stride.
struct VectorBlock {
  const std::byte* from = nullptr;
  int64_t from_stride = 0;
  std::byte* to = nullptr;
  int64_t to_stride = 0;
  int64_t bytes = 0, count = 0;
};

/// Copies the blocks; a GPU uses its copy engines. `to` may be memory of another GPU. Aliasing: none.
HCTR_OP(void copy_blocks(Context&, const std::vector<VectorBlock>& blocks))

}  // namespace hctr::ops
