#include "ops/gemm/transposed_weights.h"

#include <algorithm>

namespace hctr::ops {

bool gains_by_transposed_weights(const Runtime& runtime) {
  return gains_by_transposed_weights(gpu_traits(runtime.device()), runtime.options());
}

bool gains_by_transposed_weights(const std::optional<GpuTraits>& gpu, const RuntimeOptions& options) {
  return gpu && gpu->is_hopper() && options.tf32 && !options.tf32x3;
}

TensorSpec transposed_weights_spec(const TensorSpec& w) {
  const int64_t in = w.shape[0], out = w.shape[1], stride = (in + 3) / 4 * 4;
  TensorSpec spec(DType::f32, {out, in}, stride);
  spec.zero_columns = stride - in;
  return spec;
}

void expect_transposed_weights(const char* what, const Tensor& w, const Tensor& copy) {
  HCTR_EXPECT(w.rank() == 2 && w.dtype() == DType::f32, what,
              ": a transposed copy needs an f32 matrix, found "
              "weights ",
              to_string(w.shape()), " of ", name_of(w.dtype()));
  expect_alike(what, {w, copy});
  HCTR_EXPECT(copy.spec() == transposed_weights_spec(w.spec()), what, ": a transposed copy ", to_string(copy.shape()),
              " with rows of ", copy.row_stride(), " elements, of weights ", to_string(w.shape()));
}

void transpose_weights(Context& ctx, const std::vector<TransposedWeights>& all) {
  for (const auto& [w, copy] : all) {
    expect_on("transpose_weights", ctx.device(), w);
    expect_transposed_weights("transpose_weights", w, copy);
  }
  HCTR_ON_DEVICE(ctx, transpose_weights(ctx, all));
}

void cpu::transpose_weights(Context&, const std::vector<TransposedWeights>& all) {
  for (const auto& [w, copy] : all) {
    const auto from = w.view<const float, 2>();
    const auto to = copy.view<float, 2>();
    for (int64_t out = 0; out < to.size(0); ++out) {
      for (int64_t in = 0; in < to.size(1); ++in) to(out, in) = from(in, out);
      std::fill(to.row(out) + to.size(1), to.row(out) + to.row_stride, 0.0f);
    }
  }
}

}  // namespace hctr::ops
