#include "ops/transposed_weights.cuh"

#include "device/cuda_runtime_calls.h"
#include "device/launch.cuh"
#include "ops/operand_memory.cuh"

namespace hctr::ops::cuda {
namespace {

constexpr int kTile = 32, kTileRows = 8;  // a block transposes 32 x 32 elements, its threads four each

/// `stride`: of w^T, whose columns from `in` on become zero.
__global__ void __launch_bounds__(kTile* kTileRows)
    transpose_weights_kernel(View<const float, 2> w, int64_t stride, int across, float* to) {
  __shared__ float tile[kTile][kTile + 1];
  hctr::cuda::start_early();
  const int lane = static_cast<int>(threadIdx.x) % kTile, warp = static_cast<int>(threadIdx.x) / kTile;
  const int64_t first_in = static_cast<int64_t>(blockIdx.x) / across * kTile,
                first_out = static_cast<int64_t>(blockIdx.x) % across * kTile;
#pragma unroll
  for (int i = 0; i < kTile; i += kTileRows) {
    const int64_t in = first_in + warp + i, out = first_out + lane;
    tile[warp + i][lane] = in < w.size(0) && out < w.size(1) ? w.row(in)[out] : 0.0f;
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kTile; i += kTileRows) {
    const int64_t out = first_out + warp + i, in = first_in + lane;
    if (out < w.size(1) && in < stride) to[out * stride + in] = tile[lane][warp + i];
  }
}

}  // namespace

bool takes_transposed_weights(Context& ctx, int64_t rows, const Tensor& w) {
  const Runtime& runtime = ctx.runtime();
  return w.dtype() == DType::f32 && runtime.options().tf32 && !runtime.options().tf32x3 &&
         hctr::cuda::compute_capability() == 90 && ctx.stream().handle == runtime.compute_stream().handle &&
         rows >= 16 * std::max(w.dim(0), w.dim(1));
}

Tensor transposed_weights(Context& ctx, const Tensor& w) {
  const int64_t in = w.dim(0), out = w.dim(1), stride = (in + 3) / 4 * 4;
  float* const to = operand_memory(ctx.runtime(), out * stride);
  const int64_t across = (out + kTile - 1) / kTile, down = (stride + kTile - 1) / kTile;
  launch(ctx, "transpose_weights", hctr::cuda::early({across * down, kTile * kTileRows}), transpose_weights_kernel,
         w.view<const float, 2>(), stride, static_cast<int>(across), to);
  TensorSpec spec(DType::f32, {out, in}, stride);
  spec.zero_columns = stride - in;
  return Tensor(to, spec, w.device());
}

}  // namespace hctr::ops::cuda
