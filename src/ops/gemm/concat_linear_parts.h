// How concat_linear_backward() on CUDA splits the rows into parts. The scratch memory has space for the sums of all
// parts.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hctr::ops {

/// The number of parts of the rows that are summed separately. There are enough blocks to saturate the memory bandwidth
/// of a GPU, and each block has at least one row per warp. `width`: total columns of all inputs.
inline int64_t concat_linear_parts(int64_t rows, int64_t width) {
  constexpr int64_t kBlocks = 1024, kColumnsOfBlock = 256, kWarps = 8;
  const int64_t tiles = (width + kColumnsOfBlock - 1) / kColumnsOfBlock;
  return std::clamp<int64_t>(std::min(kBlocks / std::max<int64_t>(tiles, 1), (rows + kWarps - 1) / kWarps), 1, 512);
}

/// The elements of a part's sums: for d_w, for the bias gradients through ReLUs, and for the sum of d_y.
inline int64_t concat_linear_part_width(int64_t width) { return 2 * width + 1; }

}  // namespace hctr::ops
