#include "ops/optimizer/clip.h"

#include "ops/common/element_loops.cuh"
#include "ops/optimizer/clip_rules.h"

namespace hctr::ops {

void cuda::clip_to_norm(Context& ctx, float most, Tensor squares, Tensor g) {
  const Extent extent = extent_of({g});
  map<ClipToNorm, float, float, 1>(ctx, "clip_to_norm", {most, squares.data<const float>(), ctx.state()},
                                   {{rows_of<const float>(g, extent)}}, rows_of<float>(g, extent));
}

}  // namespace hctr::ops
