#include "ops/common/copy.h"

#include "ops/common/element_loops.h"

namespace hctr::ops {
namespace {

struct Same {
  template <class A>
  A operator()(A x) const {
    return x;
  }
};

}  // namespace

void copy(Context& ctx, Tensor x, Tensor y) {
  expect_on("copy x", ctx.device(), x);
  expect_on("copy y", ctx.device(), y);
  const bool rows_match = x.rows() == y.rows() && x.elements() == y.elements();
  HCTR_EXPECT(rows_match || (x.dense() && y.dense() && x.elements() == y.elements()), "copy from ",
              to_string(x.shape()), x.dense() ? "" : " with strided rows", " to ", to_string(y.shape()),
              y.dense() ? "" : " with strided rows");
  const bool same_rows = (x.dense() && y.dense()) || x.row_stride() == y.row_stride();
  if (x.bytes() == y.bytes() && x.dtype() == y.dtype() && same_rows) return;
  HCTR_ON_DEVICE(ctx, copy(ctx, x, y));
}

void cpu::copy(Context& ctx, Tensor x, Tensor y) {
  const Extent extent = extent_of({x, y});
  dispatch_real(x.dtype(), [&]<class In>() {
    dispatch_real(y.dtype(),
                  [&]<class Out>() { map(ctx, Same(), rows_of<Out>(y, extent), rows_of<const In>(x, extent)); });
  });
}

}  // namespace hctr::ops
