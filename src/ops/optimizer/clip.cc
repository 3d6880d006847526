#include "ops/optimizer/clip.h"

#include "ops/common/element_loops.h"
#include "ops/optimizer/clip_rules.h"

namespace hctr::ops {

void clip_to_norm(Context& ctx, float most, Tensor squares, Tensor g) {
  expect_on("clip_to_norm", ctx.device(), g);
  expect_alike("clip_to_norm", {g, squares});
  expect_shape("clip_to_norm squares", squares, {1});
  HCTR_EXPECT(g.dense(), "clip_to_norm() needs dense rows, found strided rows");
  HCTR_EXPECT(ctx.state(), "clip_to_norm() needs a step state");
  HCTR_ON_DEVICE(ctx, clip_to_norm(ctx, most, squares, g));
}

void cpu::clip_to_norm(Context& ctx, float most, Tensor squares, Tensor g) {
  const Extent extent = extent_of({g});
  ClipToNorm f{most, squares.data<const float>(), ctx.state()};
  f.prepare();
  map(ctx, f, rows_of<float>(g, extent), rows_of<const float>(g, extent));
}

}  // namespace hctr::ops
