#include "ops/optimizer/penalty.h"

#include <array>
#include <cmath>

#include "ops/common/element_loops.h"
#include "ops/optimizer/penalty_rules.h"

namespace hctr::ops {

TensorSpec penalty_scratch() { return TensorSpec(DType::f32, {kPenaltyParts}); }

void add_penalty(Context& ctx, Penalty kind, float factor, Tensor w, Tensor scratch, Tensor total) {
  expect_on("add_penalty", ctx.device(), w);
  expect_alike("add_penalty", {w, scratch, total});
  expect_shape("add_penalty scratch", scratch, penalty_scratch().shape);
  expect_shape("add_penalty total", total, {1});
  HCTR_EXPECT(w.dense(), "add_penalty() needs dense rows, found strided rows");
  HCTR_ON_DEVICE(ctx, add_penalty(ctx, kind, factor, w, scratch, total));
}

void cpu::add_penalty(Context& ctx, Penalty kind, float factor, Tensor w, Tensor scratch, Tensor total) {
  const int64_t count = w.elements(), part = (count + kPenaltyParts - 1) / kPenaltyParts;
  const float* values = w.data<float>();
  float* sums = scratch.data<float>();
  ctx.threads().parallel_for(kPenaltyParts, std::max<int64_t>(1, 16384 / std::max<int64_t>(part, 1)),
                             [&](int64_t first, int64_t last) {
                               for (int64_t p = first; p < last; ++p) {
                                 // independent partial sums, so that the loop vectorizes
                                 constexpr int64_t kLanes = 16;
                                 double lanes[kLanes] = {};
                                 const int64_t end = std::min(p * part + part, count);
                                 for (int64_t i = p * part; i < end; i += kLanes)
                                   for (int64_t j = 0; j < std::min(kLanes, end - i); ++j)
                                     lanes[j] += static_cast<double>(penalty_of(kind, values[i + j]));
                                 double sum = 0;
                                 for (const double lane : lanes) sum += lane;
                                 sums[p] = static_cast<float>(sum);
                               }
                             });
  double sum = 0;
  for (int64_t p = 0; p < kPenaltyParts; ++p) sum += static_cast<double>(sums[p]);
  *total.data<float>() += factor * static_cast<float>(sum);
}

void add_penalty_gradient(Context& ctx, Penalty kind, float factor, Tensor w, Tensor dw) {
  expect_on("add_penalty_gradient", ctx.device(), w);
  expect_shape("add_penalty_gradient dw", dw, w.shape());
  expect_alike("add_penalty_gradient", {w, dw});
  HCTR_EXPECT(w.dense() && dw.dense(), "add_penalty_gradient() needs dense rows, found strided rows");
  HCTR_EXPECT(ctx.state(), "add_penalty_gradient() needs a step state");
  HCTR_ON_DEVICE(ctx, add_penalty_gradient(ctx, kind, factor, w, dw));
}

void cpu::add_penalty_gradient(Context& ctx, Penalty kind, float factor, Tensor w, Tensor dw) {
  const Extent extent = extent_of({w, dw});
  AddPenaltyGradient f{kind, factor, ctx.state()};
  f.prepare();
  map(ctx, f, rows_of<float>(dw, extent), rows_of<const float>(w, extent), rows_of<const float>(dw, extent));
}

}  // namespace hctr::ops
