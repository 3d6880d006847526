// How CUDA's concat_linear_backward() cuts the rows into parts, which its scratch memory must have room for.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hctr::ops {

/// The rows are summed in this many parts: as many blocks as a GPU needs to read at the speed of memory, none with
/// fewer rows than it has warps. `width`: columns of all inputs.
inline int64_t concat_linear_parts(int64_t rows, int64_t width) {
  constexpr int64_t kBlocks = 1024, kColumnsOfBlock = 256, kWarps = 8;
  const int64_t tiles = (width + kColumnsOfBlock - 1) / kColumnsOfBlock;
  return std::clamp<int64_t>(std::min(kBlocks / std::max<int64_t>(tiles, 1), (rows + kWarps - 1) / kWarps), 1, 512);
}

/// The sums of a part: for d_w, for the sum of d_y, and for the bias below the ReLU of each input.
inline int64_t concat_linear_part_width(int64_t width) { return 2 * width + 1; }

}  // namespace hctr::ops
