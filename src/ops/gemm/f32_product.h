// f32 GEMMs by multiply-adds instead of tensor cores, in kernels of ours.
#pragma once

#include <initializer_list>
#include <optional>

#include "core/device/op.h"
#include "ops/gemm/linear.h"
#include "ops/gemm/tile_division.h"

namespace hctr::ops {

/// The tiles of the result: 128 x 128; 256 x 64, or 64 x 256 where a is transposed; for small results 128 x 64, or
/// 64 x 128 where a is transposed; 64 x 64.
enum class F32Tiles { square, thin, half, quarter };
inline constexpr F32Tiles kF32Tiles[] = {F32Tiles::square, F32Tiles::thin, F32Tiles::half, F32Tiles::quarter};

/// `depth`: of a step, in elements of the summed dimension.
struct F32TileSize {
  int m, n, depth;
};
constexpr F32TileSize f32_tile_size(F32Tiles tiles, bool transposed_a) {
  const F32TileSize of[] = {{128, 128, 32}, {256, 64, 32}, {128, 64, 64}, {64, 64, 64}};
  const F32TileSize size = of[static_cast<int>(tiles)];
  return transposed_a ? F32TileSize{size.n, size.m, size.depth} : size;
}

/// The fastest tiles for a GEMM [m, k] [k, n], by the estimate, given their division among blocks.
F32Tiles f32_tiles(bool transposed_a, int64_t m, int64_t n, int64_t k, int64_t multiprocessors);

/// How such tiles are divided among blocks, for one GEMM or several, each with this many steps.
DividedTiles divide_f32_product(F32Tiles, int64_t tiles, int64_t steps, int64_t multiprocessors);

/// The use of a GEMM. The library also adds biases and applies max(x, 0), so those uses are `plain`. For `ended` uses
/// (dropout or ReLU's gradient) the library needs an extra pass over the result. `transposed`: plain, but b is
/// transposed, which costs a copy.
enum class F32Use { plain, transposed, ended, weight_gradient };
/// Whether a GEMM [m, k] [k, n] is faster by ops/gemm/f32_product.cuh than by the library, by its size.
bool f32_product_gains(F32Use, int64_t m, int64_t n, int64_t k, int64_t multiprocessors);

namespace hopper {

/// Whether kernels of ops/gemm/f32_product.cuh run in this context: f32 is not computed as TF32, on a whole GPU of
/// compute capability 9.0, on one of the streams for GEMMs.
bool runs_f32_products(Context&);

/// Whether ops/gemm/f32_product.cuh supports this GEMM, and is faster than the library: f32 where runs_f32_products();
/// rows at multiples of 16 bytes; enough work. The same for equal shapes and contexts.
bool takes_f32_product(Context&, F32Use, std::initializer_list<Tensor> tensors, int64_t m, int64_t n, int64_t k);

// In the following `tiles` are those of the GEMM, f32_tiles() if they are not given.

/// c = op(a) op(b), for GEMMs that takes_f32_product(). b transposed is copied first, on the compute stream alone.
void f32_matmul(Context&, Tensor a, Transpose of_a, Tensor b, Transpose of_b, Tensor c,
                std::optional<F32Tiles> tiles = {});
/// y = x W + bias, or max(x W + bias, 0).
void f32_linear(Context&, Tensor x, Tensor w, Tensor bias, bool relu, Tensor y, std::optional<F32Tiles> tiles = {});
void f32_linear_relu_dropout(Context&, Tensor x, Tensor w, Tensor bias, float rate, uint64_t stream, Tensor y,
                             std::optional<F32Tiles> tiles = {});
/// d_z as in gradient_through_relu(), and in `sums` partial column sums of d_z over 64 or more rows each; returns that
/// number of rows.
int64_t f32_gradient_through_relu(Context&, Tensor d_out, Tensor w, float factor, Tensor y, Tensor d_z, float* sums,
                                  std::optional<F32Tiles> tiles = {});

}  // namespace hopper
}  // namespace hctr::ops
