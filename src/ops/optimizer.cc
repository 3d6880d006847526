#include "ops/optimizer.h"

#include "ops/element_loops.h"

namespace hctr::ops {

void update_dense(Context& ctx, const Optimizer& optimizer, Tensor g, Tensor w, const std::vector<Tensor>& states) {
  expect_on("update_dense", ctx.device(), w);
  HCTR_EXPECT(static_cast<int>(states.size()) == optimizer.states(), "update_dense with ", states.size(), " states, not ", optimizer.states());
  HCTR_EXPECT(ctx.state(), "update_dense without a step's state");
  const auto check = [&](const char* what, const Tensor& t) {
    expect_shape(what, t, w.shape());
    expect_alike(what, {w, t});
    HCTR_EXPECT(t.dense(), what, ": strided rows");
  };
  check("update_dense w", w);
  check("update_dense g", g);
  for (const Tensor& state : states) check("update_dense state", state);
  HCTR_ON_DEVICE(ctx, update_dense(ctx, optimizer, g, w, states));
}

void cpu::update_dense(Context& ctx, const Optimizer& optimizer, Tensor g, Tensor w, const std::vector<Tensor>& states) {
  const UpdateScalars scalars = update_scalars(optimizer, *ctx.state());
  const float* gradients = g.data<const float>();
  float* weights = w.data<float>();
  dispatch_rule(optimizer.kind, [&]<class Rule, int kStates>() {
    float* state0 = kStates > 0 ? states[0].data<float>() : nullptr;
    float* state1 = kStates > 1 ? states[1].data<float>() : nullptr;
    for_pieces(ctx, {1, w.elements()}, [=](int64_t, int64_t begin, int64_t end) {
      const Optimizer constants = optimizer;
      const UpdateScalars step = scalars;
      HCTR_INDEPENDENT_ITERATIONS
      for (int64_t i = begin; i < end; ++i) {
        float weight = weights[i], state[2] = {kStates > 0 ? state0[i] : 0, kStates > 1 ? state1[i] : 0};
        Rule::update(constants, step, gradients[i] * step.gradient_scale, weight, state);
        weights[i] = weight;
        if constexpr (kStates > 0) state0[i] = state[0];
        if constexpr (kStates > 1) state1[i] = state[1];
      }
    });
  });
}

}  // namespace hctr::ops
