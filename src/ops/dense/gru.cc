#include "ops/dense/gru.h"

#include "ops/common/checks.h"
#include "ops/common/element_loops.h"
#include "ops/dense/gru_rules.h"

namespace hctr::ops {
namespace {

struct Expected {
  Context& ctx;
  const char* what;
  DType dtype, wide;
  int64_t batch, units;

  Expected(Context& ctx_, const char* what_, const Tensor& before)
      : ctx(ctx_),
        what(what_),
        dtype(before.dtype()),
        wide(sum_dtype(dtype)),
        batch(before.dim(0)),
        units(before.dim(1)) {}
  void matrix(const Tensor& t, int64_t gates, DType type) const {
    expect_tensor(what, ctx.device(), t, {batch, gates * units}, type);
  }
};

template <class F>
void each_unit(Context& ctx, const F& f, int64_t batch, int64_t units) {
  cpu::for_pieces(ctx, {batch, units}, [&](int64_t row, int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) f(row, j);
  });
}

}  // namespace

void gru_step(Context& ctx, Tensor of_input, Tensor of_state, Tensor bias, Tensor before, Tensor kept, Tensor h) {
  const Expected expected(ctx, "gru_step", before);
  expected.matrix(of_input, 3, expected.wide);
  expected.matrix(of_state, 3, expected.wide);
  expected.matrix(kept, 4, expected.wide);
  expected.matrix(before, 1, expected.dtype);
  expected.matrix(h, 1, expected.dtype);
  expect_shape("gru_step bias", bias, {3 * expected.units});
  expect_alike("gru_step", {bias, h});
  HCTR_ON_DEVICE(ctx, gru_step(ctx, of_input, of_state, bias, before, kept, h));
}

void cpu::gru_step(Context& ctx, Tensor of_input, Tensor of_state, Tensor bias, Tensor before, Tensor kept, Tensor h) {
  dispatch_real(h.dtype(), [&]<class T>() {
    using A = Acc<T>;
    const GruStep<T> f{of_input.matrix<const A>(), of_state.matrix<const A>(), bias.data<const T>(),
                       before.matrix<const T>(),   kept.matrix<A>(),           h.matrix<T>()};
    each_unit(ctx, f, h.dim(0), h.dim(1));
  });
}

void gru_step_backward(Context& ctx, Tensor kept, Tensor before, Tensor dh, Tensor through, Tensor direct,
                       Tensor d_of_input, Tensor d_of_state) {
  const Expected expected(ctx, "gru_step_backward", before);
  expected.matrix(kept, 4, expected.wide);
  expected.matrix(before, 1, expected.dtype);
  expected.matrix(dh, 1, expected.dtype);
  expected.matrix(through, 1, expected.wide);
  expected.matrix(direct, 1, expected.wide);
  expected.matrix(d_of_input, 3, expected.dtype);
  expected.matrix(d_of_state, 3, expected.dtype);
  HCTR_ON_DEVICE(ctx, gru_step_backward(ctx, kept, before, dh, through, direct, d_of_input, d_of_state));
}

void cpu::gru_step_backward(Context& ctx, Tensor kept, Tensor before, Tensor dh, Tensor through, Tensor direct,
                            Tensor d_of_input, Tensor d_of_state) {
  dispatch_real(dh.dtype(), [&]<class T>() {
    using A = Acc<T>;
    const GruStepBackward<T> f{kept.matrix<const A>(),    before.matrix<const T>(), dh.matrix<const T>(),
                               through.matrix<const A>(), direct.matrix<A>(),       d_of_input.matrix<T>(),
                               d_of_state.matrix<T>()};
    each_unit(ctx, f, dh.dim(0), dh.dim(1));
  });
}

}  // namespace hctr::ops
