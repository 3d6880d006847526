#include "ops/dropout.h"

#include "ops/dropout_rule.h"
#include "ops/element_loops.h"

namespace hctr::ops {

void dropout(Context& ctx, float rate, uint64_t stream, Tensor x, Tensor y) {
  expect_on("dropout", ctx.device(), y);
  expect_shape("dropout y", y, x.shape());
  expect_alike("dropout", {x, y});
  HCTR_EXPECT(rate > 0 && rate < 1, "dropout of rate ", rate);
  HCTR_EXPECT(ctx.state(), "dropout without a step's state");
  HCTR_ON_DEVICE(ctx, dropout(ctx, rate, stream, x, y));
}

void dropout_backward(Context& ctx, float rate, uint64_t stream, Tensor dy, Tensor dx) {
  dropout(ctx, rate, stream, dy, dx);
}

float dropout_scale(float rate) { return DropoutRule(rate, 0, 0).scale; }

void cpu::dropout(Context& ctx, float rate, uint64_t stream, Tensor x, Tensor y) {
  const DropoutRule rule(rate, ctx.seed(), stream);
  const StepState state = *ctx.state();
  const int64_t width = x.row_elements(), elements = x.elements();
  // A dense tensor is one long row here too: indices continue from row 0.
  const Extent extent = extent_of({x, y});
  dispatch_real(x.dtype(), [&]<class T>() {
    const View<const T, 2> from = rows_of<const T>(x, extent);
    const View<T, 2> to = rows_of<T>(y, extent);
    constexpr int64_t kPiece = 1024;
    for_pieces(ctx, extent, [&](int64_t row, int64_t begin, int64_t end) {
      const DropoutRule own = rule;  // a local copy stays in registers: writes to `to` cannot alias it
      uint32_t bits[kPiece];
      for (; begin < end; begin += kPiece) {
        const int64_t count = std::min(kPiece, end - begin);
        random_bits(own.key, static_cast<uint64_t>(state.step), dropout_index(state, elements, row, width, begin),
                    count, bits);
        const T* in = from.row(row) + begin;
        T* out = to.row(row) + begin;
        HCTR_INDEPENDENT_ITERATIONS
        for (int64_t i = 0; i < count; ++i) out[i] = static_cast<T>(own.apply(bits[i], static_cast<Acc<T>>(in[i])));
      }
    });
  });
}

}  // namespace hctr::ops
