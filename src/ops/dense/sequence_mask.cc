#include "ops/dense/sequence_mask.h"

#include "ops/common/element_loops.h"
#include "ops/dense/sequence_mask_rules.h"

namespace hctr::ops {

void sequence_mask(Context& ctx, Tensor from, Tensor to, Tensor mask) {
  expect_on("sequence_mask", ctx.device(), mask);
  expect_alike("sequence_mask", {from, to, mask});
  HCTR_EXPECT(mask.rank() == 4 && mask.dim(1) == 1, "sequence_mask(): the output has shape ", to_string(mask.shape()));
  expect_shape("sequence_mask from", from, {mask.rows(), 1});
  expect_shape("sequence_mask to", to, {mask.rows(), 1});
  HCTR_ON_DEVICE(ctx, sequence_mask(ctx, from, to, mask));
}

void cpu::sequence_mask(Context& ctx, Tensor from, Tensor to, Tensor mask) {
  dispatch_real(mask.dtype(), [&]<class T>() {
    const SequenceMask<T> f{from.matrix<const T>(), to.matrix<const T>(), mask.dim(3)};
    const auto rows = mask.matrix<T>();
    for_pieces(ctx, {rows.size(0), rows.size(1)}, [&](int64_t row, int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) rows.row(row)[at] = f(row, at);
    });
  });
}

}  // namespace hctr::ops
