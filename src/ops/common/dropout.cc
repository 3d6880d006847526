#include "ops/common/dropout.h"

#include "ops/common/dropout_rule.h"
#include "ops/common/element_loops.h"

namespace hctr::ops {

void dropout(Context& ctx, float rate, uint64_t stream, Tensor x, Tensor y) {
  expect_on("dropout", ctx.device(), y);
  expect_shape("dropout y", y, x.shape());
  expect_alike("dropout", {x, y});
  HCTR_EXPECT(rate > 0 && rate < 1, "dropout of rate ", rate);
  HCTR_EXPECT(ctx.state(), "dropout() needs a step state");
  HCTR_ON_DEVICE(ctx, dropout(ctx, rate, stream, x, y));
}

void dropout_backward(Context& ctx, float rate, uint64_t stream, Tensor dy, Tensor dx) {
  dropout(ctx, rate, stream, dy, dx);
}

float dropout_scale(float rate) { return DropoutRule(rate, 0, 0).scale; }

void cpu::dropout(Context& ctx, float rate, uint64_t stream, Tensor x, Tensor y) {
  const DropoutRule rule(rate, ctx.seed(), stream);
  const StepState state = *ctx.state();
  const int64_t rows = x.rows(), width = x.row_elements();
  dispatch_real(x.dtype(), [&]<class T>() {
    const View<const T, 2> from = x.matrix<const T>();
    const View<T, 2> to = y.matrix<T>();
    for_pieces(ctx, {rows, width}, [&](int64_t row, int64_t begin, int64_t end) {
      constexpr int kBlocks = 16;  // groups of 32 columns that one iteration processes
      // the compiler keeps a local copy in registers, because stores to `to` cannot alias the copy
      const DropoutRule own = rule;
      uint32_t values[kBlocks * 16] = {}, bits[kBlocks * 32];
      for (int64_t first = begin / 32 * 32; first < end; first += kBlocks * 32) {
        const int64_t last = std::min(end, first + kBlocks * 32);
        random_bits(own.key, static_cast<uint64_t>(state.step), dropout_draw(state, rows, row, width, first) * 4,
                    (last - first + 31) / 32 * 16, values, kDropoutRounds);
        for (int b = 0; b < kBlocks; ++b)
          for (int c = 0; c < 32; ++c) bits[b * 32 + c] = values[b * 16 + c % 8 / 2 * 4 + c / 8] >> (16 * (c % 2));
        const int64_t from_here = std::max(begin, first);
        const T* in = from.row(row) + from_here;
        T* out = to.row(row) + from_here;
        const uint32_t* of = bits + (from_here - first);
        HCTR_INDEPENDENT_ITERATIONS
        for (int64_t i = 0; i < last - from_here; ++i)
          out[i] = static_cast<T>(own.apply(of[i], static_cast<Acc<T>>(in[i])));
      }
    });
  });
}

}  // namespace hctr::ops
