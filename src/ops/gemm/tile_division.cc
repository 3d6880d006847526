#include "ops/gemm/tile_division.h"

#include <algorithm>

namespace hctr::ops {

DividedTiles divide_tiles(int64_t tiles, int64_t steps, int64_t least_steps, int64_t multiprocessors) {
  const int64_t blocks = std::clamp<int64_t>(tiles * steps / least_steps, 1, multiprocessors);
  const int64_t rounds = tiles % blocks == 0 ? tiles / blocks : std::max<int64_t>(0, tiles / blocks - 1);
  return {static_cast<int>(blocks), static_cast<int>(rounds)};
}

}  // namespace hctr::ops
