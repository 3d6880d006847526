// f32 GEMMs by multiply-adds instead of tensor cores, in our own kernels.
#pragma once

#include <initializer_list>
#include <optional>

#include "core/device/op.h"
#include "ops/gemm/linear.h"
#include "ops/gemm/tile_division.h"

namespace hctr::ops {

/// Tile sizes of the result. square: 128 x 128. thin: 256 x 64, or 64 x 256 if a is transposed. For small results,
/// half: 128 x 64, or 64 x 128 if a is transposed; quarter: 64 x 64.
enum class F32Tiles { square, thin, half, quarter };
inline constexpr F32Tiles kF32Tiles[] = {F32Tiles::square, F32Tiles::thin, F32Tiles::half, F32Tiles::quarter};

/// `depth`: number of values of k per step.
struct F32TileSize {
  int m, n, depth;
};
constexpr F32TileSize f32_tile_size(F32Tiles tiles, bool transposed_a) {
  const F32TileSize of[] = {{128, 128, 32}, {256, 64, 32}, {128, 64, 64}, {64, 64, 64}};
  const F32TileSize size = of[static_cast<int>(tiles)];
  return transposed_a ? F32TileSize{size.n, size.m, size.depth} : size;
}

/// The tiles with the lowest estimated time for a GEMM [m, k] [k, n], including their division among blocks.
F32Tiles f32_tiles(bool transposed_a, int64_t m, int64_t n, int64_t k, int64_t multiprocessors);

/// How the tiles of one or more GEMMs, with `steps` steps each, are divided among blocks.
DividedTiles divide_f32_product(F32Tiles, int64_t tiles, int64_t steps, int64_t multiprocessors);

/// How a GEMM is used. plain: no epilogue, or a bias and max(x, 0), which the library can fuse. transposed: plain, but
/// b is transposed, so our kernels must first copy b. ended: with dropout or ReLU's gradient, for which the library
/// needs an extra pass over the result.
enum class F32Use { plain, transposed, ended, weight_gradient };
/// Whether ops/gemm/f32_product.cuh is faster than the library for a GEMM [m, k] [k, n] of this use.
bool f32_product_gains(F32Use, int64_t m, int64_t n, int64_t k, int64_t multiprocessors);

namespace hopper {

/// Whether the kernels of ops/gemm/f32_product.cuh can run in this context. The conditions: f32 is computed neither as
/// TF32 nor as TF32x3; the device has compute capability 9.0; the context is not limited to some multiprocessors; the
/// stream has exchange memory, like all GEMM streams.
bool runs_f32_products(Context&);

/// Whether ops/gemm/f32_product.cuh supports this GEMM and is faster than the library. The conditions:
/// runs_f32_products(), dtype f32, rows aligned to 16 bytes, and enough work. The result is equal for equal shapes and
/// contexts.
bool takes_f32_product(Context&, F32Use, std::initializer_list<Tensor> tensors, int64_t m, int64_t n, int64_t k);

// In the following functions, `tiles` defaults to f32_tiles().

/// c = op(a) op(b), for GEMMs that satisfy takes_f32_product(). A transposed b is first copied; only the compute stream
/// supports that copy.
void f32_matmul(Context&, Tensor a, Transpose of_a, Tensor b, Transpose of_b, Tensor c,
                std::optional<F32Tiles> tiles = {});
/// y = x W + bias, or max(x W + bias, 0) if `relu`.
void f32_linear(Context&, Tensor x, Tensor w, Tensor bias, bool relu, Tensor y, std::optional<F32Tiles> tiles = {});
void f32_linear_relu_dropout(Context&, Tensor x, Tensor w, Tensor bias, float rate, uint64_t stream, Tensor y,
                             std::optional<F32Tiles> tiles = {});
/// Computes d_z as in gradient_through_relu(). Also writes partial column sums of d_z to `sums`, one row of sums per R
/// rows of d_z. Returns R, which is at least 64.
int64_t f32_gradient_through_relu(Context&, Tensor d_out, Tensor w, float factor, Tensor y, Tensor d_z, float* sums,
                                  std::optional<F32Tiles> tiles = {});

}  // namespace hopper
}  // namespace hctr::ops
