// Copies vectors in a regular pattern to another device's memory without multiprocessors.
#pragma once

#include <cstddef>
#include <vector>

#include "core/device/op.h"

namespace hctr::ops {

/// `count` pieces of `bytes` bytes, the i-th at from + i * from_stride and at to + i * to_stride.
struct VectorBlock {
  const std::byte* from = nullptr;
  int64_t from_stride = 0;
  std::byte* to = nullptr;
  int64_t to_stride = 0;
  int64_t bytes = 0, count = 0;
};

/// Copies the blocks; on a GPU by its copy engines, and `to` may be memory of another. Aliasing: none.
HCTR_OP(void copy_blocks(Context&, const std::vector<VectorBlock>& blocks))

}  // namespace hctr::ops
