// Products of f32 that are computed by multiply-adds, not by tensor cores, in kernels of ours.
#pragma once

#include <initializer_list>

#include "device/op.h"
#include "ops/linear.h"

namespace hctr::ops {

/// How the tiles of a product are divided among `blocks` blocks: the first `rounds` of each are whole, what is left is
/// divided evenly.
struct F32Divided {
  int blocks, rounds;
};
/// For so many tiles, each of so many steps of the summed dimension.
F32Divided divide_f32_product(int64_t tiles, int64_t steps, int64_t multiprocessors);

/// What a product is for. The library adds biases and takes max(x, 0) as well, so that those are `plain`. For what is
/// `ended`, dropout or the gradient of a ReLU, it needs a pass over the result.
enum class F32Use { plain, ended, weight_gradient };
/// Whether a product [m, k] [k, n] is faster by ops/f32_product.cuh than by the library, by its size.
bool f32_product_gains(F32Use, int64_t m, int64_t n, int64_t k, int64_t multiprocessors);

/// Whether tiles of 256 x 64, or 64 x 256 for gradients of weights, multiply so few zeros that they are better than
/// those of 128 x 128 for a result [m, n].
bool takes_long_f32_tiles(bool weight_gradient, int64_t m, int64_t n);

namespace hopper {

/// Whether the context's stream, one of those that products run on, has memory in which each multiprocessor hands so
/// many bytes of sums to another (ops/f32_pieces.cuh). On GPUs.
bool has_memory_for_sums(Context&, int64_t bytes);

/// Whether kernels of ops/f32_product.cuh run in this context: f32 is not computed as TF32, on a GPU of compute
/// capability 9.0, all of it, and one of the streams that products run on.
bool runs_f32_products(Context&);

/// Whether ops/f32_product.cuh takes this product, and is faster than the library: f32 where runs_f32_products(); rows
/// at multiples of 16 bytes; enough work. The same for equal shapes and contexts.
bool takes_f32_product(Context&, F32Use, std::initializer_list<Tensor> tensors, int64_t m, int64_t n, int64_t k);

/// c = op(a) op(b), for products that takes_f32_product(). b transposed is copied first, on the compute stream alone.
void f32_matmul(Context&, Tensor a, Transpose of_a, Tensor b, Transpose of_b, Tensor c);
/// y = x W + bias, or max(x W + bias, 0).
void f32_linear(Context&, Tensor x, Tensor w, Tensor bias, bool relu, Tensor y);
void f32_linear_relu_dropout(Context&, Tensor x, Tensor w, Tensor bias, float rate, uint64_t stream, Tensor y);
/// d_z as gradient_through_relu(), and in `sums` those of its columns for so many rows each, 128 or more, as it
/// returns.
int64_t f32_gradient_through_relu(Context&, Tensor d_out, Tensor w, float factor, Tensor y, Tensor d_z, float* sums);
inline constexpr int64_t kF32TileBytes = 128 * 128 * 4;

}  // namespace hopper
}  // namespace hctr::ops
