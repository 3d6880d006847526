#include "ops/optimizer/peer_sum.h"

#include <cmath>

namespace hctr::ops {

void sum_half(Context& ctx, Tensor mine, float* theirs, bool second, const uint32_t* aborted, OverflowSearch search) {
  expect_on("sum_half", ctx.device(), mine);
  HCTR_EXPECT(mine.dtype() == DType::f32 && mine.dense(), "sum_half of ", name_of(mine.dtype()));
  HCTR_ON_DEVICE(ctx, sum_half(ctx, mine, theirs, second, aborted, search));
}

namespace cpu {

void sum_half(Context&, Tensor mine, float* theirs, bool second, const uint32_t* aborted, OverflowSearch search) {
  if (aborted && *aborted != 0) return;
  const int64_t n = mine.elements(), half = first_half(n);
  auto* const values = mine.data<float>();
  for (int64_t i = second ? half : 0; i < (second ? n : half); ++i) {
    values[i] = theirs[i] = values[i] + theirs[i];
    if (search.found && !(std::fabs(values[i]) <= search.largest)) *search.found = 1;  // also true for NaN
  }
}

}  // namespace cpu
}  // namespace hctr::ops
