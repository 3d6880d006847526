// Epilogues of the f32 multiply-add GEMMs, for compute capability 9.0.
#include "ops/common/dropout_rule.h"
#include "ops/gemm/f32_product.cuh"
#include "ops/gemm/f32_product.h"
#include "ops/gemm/transposed_weights.cuh"

namespace hctr::ops {
namespace {

/// The epilogue that leaves the GEMM result unchanged.
struct F32Plain {
  static constexpr bool kSums = false;
  template <class Places, int R, int C>
  __device__ void finish(const hopper::F32Shape&, const Places&, float (&)[R][C]) const {}
};

/// Epilogue: p + bias, or max(p + bias, 0), for a GEMM result p.
template <bool kRelu>
struct F32Bias {
  static constexpr bool kSums = false;
  const float* bias;

  template <class Places, int R, int C>
  __device__ void finish(const hopper::F32Shape& shape, const Places& at, float (&sums)[R][C]) const {
#pragma unroll
    for (int j = 0; j < C; ++j) {
      const float of_column = at.column(j) < shape.n ? bias[at.column(j)] : 0;
#pragma unroll
      for (int i = 0; i < R; ++i) {
        const float sum = sums[i][j] + of_column;
        sums[i][j] = kRelu && sum < 0 ? 0.0f : sum;  // a NaN stays NaN
      }
    }
  }
};

/// Epilogue: dropout(max(p + bias, 0)).
struct F32BiasReluDropout {
  static constexpr bool kSums = false;
  F32Bias<true> bias;
  DropoutRule rule;
  const StepState* state;

  template <class Places, int R, int C>
  __device__ void finish(const hopper::F32Shape& shape, const Places& at, float (&sums)[R][C]) const {
    bias.finish(shape, at, sums);
    const StepState& s = *state;
    const uint64_t step = static_cast<uint64_t>(s.step), begin = dropout_draw(s, shape.m, 0, shape.n, 0);
    const int per_row = (shape.n + 31) / 32;
#pragma unroll
    for (int i = 0; i < R; ++i) {
      // Two draws decide eight columns of the thread: four adjacent columns, and four more within the same 32 columns
      // (ops/common/dropout_rule.h).
#pragma unroll
      for (int j = 0; j < C; j += 8) {
        const int column = at.column(j);
        const uint64_t first =
            begin +
            (static_cast<uint64_t>(at.row(i)) * static_cast<uint64_t>(per_row) + static_cast<uint64_t>(column / 32)) *
                4 +
            static_cast<uint64_t>(column % 8 / 2);
        const Random4 draws[2] = {philox<kDropoutRounds>(rule.key, step, first),
                                  philox<kDropoutRounds>(rule.key, step, first + 1)};
#pragma unroll
        for (int c = 0; c < 8; ++c) {
          const uint32_t both = number_of(draws[c % 4 / 2], at.column(j + c) % 32 / 8);
          sums[i][j + c] = rule.apply(c % 2 ? both >> 16 : both, sums[i][j + c]);
        }
      }
    }
  }

 private:
  __device__ static uint32_t number_of(const Random4& draw, int which) {
    const uint32_t low = which & 1 ? draw.v[1] : draw.v[0], high = which & 1 ? draw.v[3] : draw.v[2];
    return which & 2 ? high : low;
  }
};

/// Epilogue: y > 0 ? factor p : 0. `sums`: the column sums of the result.
struct F32ThroughRelu {
  static constexpr bool kSums = true;
  View<const float, 2> y;
  float factor;
  float* sums;

  /// Rows of y are aligned to 16 bytes. For positions outside y, the code loads some valid element and sets the result
  /// to 0, so that no load is conditional.
  template <class Places, int R, int C>
  __device__ void finish(const hopper::F32Shape& shape, const Places& at, float (&products)[R][C]) const {
    const int last_column = (shape.n - 1) / 4 * 4;
#pragma unroll
    for (int i = 0; i < R; ++i) {
      const float* const row = y.row(min(at.row(i), shape.m - 1));
      float4 read[C / 4];
#pragma unroll
      for (int q = 0; q < C / 4; ++q)
        read[q] = *reinterpret_cast<const float4*>(row + min(at.column(4 * q), last_column));
#pragma unroll
      for (int j = 0; j < C; ++j) {
        const float of = j % 4 == 0   ? read[j / 4].x
                         : j % 4 == 1 ? read[j / 4].y
                         : j % 4 == 2 ? read[j / 4].z
                                      : read[j / 4].w;
        products[i][j] = of > 0 && at.row(i) < shape.m ? factor * products[i][j] : 0.0f;
      }
    }
  }
};

}  // namespace

void hopper::f32_matmul(Context& ctx, Tensor a, Transpose of_a, Tensor b, Transpose of_b, Tensor c,
                        std::optional<F32Tiles> tiles) {
  HCTR_EXPECT(of_b == Transpose::no || ctx.stream().handle == ctx.runtime().compute_stream().handle,
              "f32_matmul of transposed weights must run on the compute stream");
  const Tensor right = of_b == Transpose::yes ? cuda::transposed_weights(ctx, b) : b;
  if (of_a == Transpose::yes)
    f32_product<true>(ctx, "f32_product", a, right, c, F32Plain(), tiles);
  else
    f32_product<false>(ctx, "f32_product", a, right, c, F32Plain(), tiles);
}

void hopper::f32_linear(Context& ctx, Tensor x, Tensor w, Tensor bias, bool relu, Tensor y,
                        std::optional<F32Tiles> tiles) {
  if (relu)
    f32_product<false>(ctx, "f32_linear", x, w, y, F32Bias<true>{bias.data<const float>()}, tiles);
  else
    f32_product<false>(ctx, "f32_linear", x, w, y, F32Bias<false>{bias.data<const float>()}, tiles);
}

void hopper::f32_linear_relu_dropout(Context& ctx, Tensor x, Tensor w, Tensor bias, float rate, uint64_t stream,
                                     Tensor y, std::optional<F32Tiles> tiles) {
  const F32BiasReluDropout epilogue{{bias.data<const float>()}, DropoutRule(rate, ctx.seed(), stream), ctx.state()};
  f32_product<false>(ctx, "f32_linear_relu_dropout", x, w, y, epilogue, tiles);
}

int64_t hopper::f32_gradient_through_relu(Context& ctx, Tensor d_out, Tensor w, float factor, Tensor y, Tensor d_z,
                                          float* sums, std::optional<F32Tiles> tiles) {
  return f32_product<false>(ctx, "f32_gradient_through_relu", d_out, cuda::transposed_weights(ctx, w), d_z,
                            F32ThroughRelu{y.view<const float, 2>(), factor, sums}, tiles);
}

}  // namespace hctr::ops
