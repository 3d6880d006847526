#include "ops/embedding/bag_lengths.h"

namespace hctr::ops {

void bag_lengths(Context& ctx, const int32_t* offsets, Tensor y) {
  expect_on("bag_lengths", ctx.device(), y);
  HCTR_EXPECT(y.rank() == 2, "bag_lengths(): the output has shape ", to_string(y.shape()));
  HCTR_ON_DEVICE(ctx, bag_lengths(ctx, offsets, y));
}

void cpu::bag_lengths(Context&, const int32_t* offsets, Tensor y) {
  dispatch_real(y.dtype(), [&]<class T>() {
    const auto lengths = y.view<T, 2>();
    for (int64_t s = 0; s < y.dim(1); ++s)
      for (int64_t b = 0; b < y.rows(); ++b) {
        const int32_t* bag = offsets + s * y.rows() + b;
        lengths(b, s) = static_cast<T>(static_cast<float>(bag[1] - bag[0]));
      }
  });
}

}  // namespace hctr::ops
