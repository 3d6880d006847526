#include "ops/optimizer/optimizer.h"

#include "ops/common/copy.h"
#include "ops/common/element_loops.h"
#include "ops/optimizer/optimizer_loop.h"

namespace hctr::ops {

void update_dense(Context& ctx, const Optimizer& optimizer, Tensor g, Tensor w, const std::vector<Tensor>& states,
                  std::optional<Tensor> copy) {
  expect_on("update_dense", ctx.device(), w);
  HCTR_EXPECT(static_cast<int>(states.size()) == optimizer.states(), "update_dense with ", states.size(),
              " states, not ", optimizer.states());
  HCTR_EXPECT(ctx.state(), "update_dense() needs a step state");
  const auto check = [&](const char* what, const Tensor& t) {
    expect_shape(what, t, w.shape());
    expect_alike(what, {w, t});
    HCTR_EXPECT(t.dense(), what, ": expected dense rows, found strided rows");
  };
  check("update_dense w", w);
  check("update_dense g", g);
  for (const Tensor& state : states) check("update_dense state", state);
  if (copy) {
    expect_on("update_dense copy", ctx.device(), *copy);
    expect_shape("update_dense copy", *copy, w.shape());
    HCTR_EXPECT(copy->dense() && size_of(copy->dtype()) == 2, "update_dense copy: ", name_of(copy->dtype()));
  }
  HCTR_ON_DEVICE(ctx, update_dense(ctx, optimizer, g, w, states, copy));
}

void cpu::update_dense(Context& ctx, const Optimizer& optimizer, Tensor g, Tensor w, const std::vector<Tensor>& states,
                       std::optional<Tensor> copy) {
  if (ctx.state()->skip) return;
  const float* gradients = g.data<const float>();
  WeightMemory memory{w.data<float>(), {}};
  for (size_t s = 0; s < states.size(); ++s) memory.states[s] = states[s].data<float>();
  dispatch_rule(optimizer.kind, [&]<class Rule>() {
    const StepState& state = *ctx.state();
    const UpdateScalars scalars = Rule::scalars(optimizer, state);
    for_pieces(ctx, {1, w.elements()}, [=, &state](int64_t, int64_t begin, int64_t end) {
      WeightMemory piece = memory;
      piece.w += begin;
      for (int s = 0; s < Rule::kStates; ++s) piece.states[s] += begin;
      if (!update_elements<Rule>(optimizer, scalars, gradients + begin, optimizer.gradient_scale(scalars), piece,
                                 end - begin))
        report_spoiled(state);
    });
  });
  if (copy) cpu::copy(ctx, w, *copy);
}

}  // namespace hctr::ops
