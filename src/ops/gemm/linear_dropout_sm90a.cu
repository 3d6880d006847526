// A GEMM with bias, ReLU and optional dropout in its epilogue, for compute capability 9.0. Helper warps draw the random
// numbers while the GEMM runs.
#include "ops/common/dropout_rule.h"
#include "ops/gemm/fused_product.cuh"
#include "ops/gemm/linear_dropout.h"

namespace hctr::ops {
namespace {

/// Loads the biases of a tile from `first_column` on, and zeros past the last column. `left`: remaining columns of the
/// result.
template <class Tiles, class T>
__device__ inline void prepare_biases(const T* bias, int left, int first_column, int t, float* biases) {
  for (int c = t; c < Tiles::kN; c += hopper::kHelpers)
    biases[c] = c < left ? static_cast<float>(bias[first_column + c]) : 0.0f;
}

/// Epilogue: max(p + bias, 0) for a GEMM result p.
template <class T>
struct BiasRelu {
  static constexpr bool kBias = true, kSums = false;
  const T* bias;

  __device__ float finish(float product, float of_column, bool) const {
    const float sum = product + of_column;
    return sum < 0 ? 0.0f : sum;  // a NaN stays NaN
  }

  template <class Tiles>
  __device__ void prepare(const hopper::ProductShape& shape, int, int tile_n, int t, uint8_t*, float* biases) const {
    const int first_column = tile_n * Tiles::kN;
    prepare_biases<Tiles>(bias, shape.n - first_column, first_column, t, biases);
  }
};

/// Epilogue: dropout(max(p + bias, 0)).
template <class T>
struct BiasReluDropout {
  static constexpr bool kBias = true, kSums = false;
  const T* bias;
  DropoutRule rule;
  const StepState* state;

  __device__ float finish(float product, float of_column, bool keep) const {
    const float sum = product + of_column;
    return !keep ? 0.0f : sum < 0 ? 0.0f : sum * rule.scale;  // a NaN stays NaN
  }

  template <class Tiles>
  __device__ void prepare(const hopper::ProductShape& shape, int tile_m, int tile_n, int t, uint8_t* mask,
                          float* biases) const {
    const int first_column = tile_n * Tiles::kN;
    prepare_biases<Tiles>(bias, shape.n - first_column, first_column, t, biases);

    // Four draws decide 32 columns. Tiles start at multiples of 16 columns.
    static_assert(Tiles::kN % 16 == 0);
    constexpr int kBlocks = (Tiles::kN + 31) / 32;
    const int first_block = first_column / 32, per_row = (shape.n + 31) / 32;
    const StepState& s = *state;
    const uint64_t first_draw = dropout_draw(s, shape.m, 0, shape.n, 0), step = static_cast<uint64_t>(s.step);
#pragma unroll 1
    for (int i = t; i < Tiles::kM * kBlocks; i += hopper::kHelpers) {
      const int row = i / kBlocks, block = first_block + i % kBlocks;
      const uint32_t bits = kept(
          step,
          first_draw + (static_cast<uint64_t>(tile_m * Tiles::kM + row) * per_row + static_cast<uint64_t>(block)) * 4);
      const int at = (block * 32 - first_column) / 8;  // byte offset in the mask's row; a multiple of two
      uint8_t* const to = mask + row * Tiles::kMaskStride + at;
      if (Tiles::kN % 32 == 0) {
        *reinterpret_cast<uint32_t*>(to) = bits;
      } else {
        if (at >= 0) *reinterpret_cast<uint16_t*>(to) = static_cast<uint16_t>(bits);
        if (at + 2 < Tiles::kN / 8) *reinterpret_cast<uint16_t*>(to + 2) = static_cast<uint16_t>(bits >> 16);
      }
    }
  }

 private:
  /// Bit mask of the kept columns among 32: bit c for column c. The four draws from `draw` on decide
  /// (ops/common/dropout_rule.h).
  __device__ uint32_t kept(uint64_t step, uint64_t draw) const {
    const uint32_t least = rule.threshold << 16;
    uint32_t bits = 0;
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const Random4 draws = philox<kDropoutRounds>(rule.key, step, draw + static_cast<uint64_t>(q));
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        if (draws.v[e] << 16 >= least) bits |= 1u << (8 * e + 2 * q);
        if (draws.v[e] >= least) bits |= 2u << (8 * e + 2 * q);
      }
    }
    return bits;
  }
};

}  // namespace

void hopper::linear_relu_dropout(Context& ctx, Tensor x, Tensor w, Tensor bias, float rate, uint64_t stream, Tensor y) {
  dispatch_float(y.dtype(), [&]<class T>() {
    const BiasReluDropout<T> epilogue{bias.data<const T>(), DropoutRule(rate, ctx.seed(), stream), ctx.state()};
    fused_product<T, sizeof(T) == 2>(ctx, "linear_relu_dropout", x, w, y, epilogue);
  });
}

void hopper::linear_relu(Context& ctx, Tensor x, Tensor w, Tensor bias, Tensor y) {
  dispatch_float(y.dtype(), [&]<class T>() {
    fused_product<T, sizeof(T) == 2>(ctx, "linear_relu", x, w, y, BiasRelu<T>{bias.data<const T>()});
  });
}

}  // namespace hctr::ops
