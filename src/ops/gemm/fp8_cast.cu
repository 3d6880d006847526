// The FP8 cast kernel: a block rounds a tile of 128 x 128 elements and writes the codes plain and transposed. A thread
// processes 4 x 4 codes at a time, one word per row, and transposes the codes in registers. The threads exchange the
// words through shared memory, and can thus write both matrices in whole cache lines.
#include "ops/common/element_loops.cuh"
#include "ops/common/part_totals.cuh"
#include "ops/common/valid_rows.h"
#include "ops/gemm/bias_gradient_parts.h"
#include "ops/gemm/fp8_product.h"

namespace hctr::ops {
namespace {

constexpr int kCastTile = kFp8Tile, kCastThreads = 256, kCastWarps = kCastThreads / 32, kCastQuads = kCastTile / 4;

/// Loads four adjacent elements of a row. Elements outside x are left unchanged.
template <class T>
__device__ void load_four(View<const T, 2> x, bool packs, int64_t row, int64_t column, float (&to)[4]) {
  if (row >= x.size(0)) return;
  const int64_t left = x.size(1) - column;
  const T* from = x.row(row) + column;
  if (packs) return cuda::read<4>(from, left, to);
#pragma unroll
  for (int j = 0; j < 4; ++j)
    if (j < left) to[j] = static_cast<float>(from[j]);
}

/// The epilogue of Fp8GradientEnd, which is applied to a gradient before the cast.
template <class T>
struct GradientEnd {
  View<const T, 2> y;
  float factor;
  float* sums;  // [tiles, columns] column sums per tile; null: not requested
};

template <class T>
struct CastJob {
  View<const T, 2> x;
  bool packs;              // whether x and y are aligned for loads of four elements
  const StepState* state;  // excludes rows without a sample from amax; null: all rows count
  const Fp8Scale* scale;
  uint32_t* amax;
  std::byte *rows, *transposed;
  int64_t high, wide;  // padded numbers of rows and columns
  GradientEnd<T> end;
};

/// Returns a word whose byte i is byte `which` of words[i].
__device__ uint32_t gather_bytes(const uint32_t (&words)[4], uint32_t which) {
  const uint32_t pick = which | (which + 4) << 4;
  return __byte_perm(__byte_perm(words[0], words[1], pick), __byte_perm(words[2], words[3], pick), 0x5410);
}

/// One thread: raises amax to the largest magnitude of the block.
__device__ __forceinline__ void write_amax(uint32_t most, const uint32_t (&most_of_warp)[kCastWarps], uint32_t* amax) {
#pragma unroll
  for (int w = 0; w < kCastWarps; ++w) most = max(most, most_of_warp[w]);
  atomicMax(amax, most);  // bit patterns are ordered like magnitudes; NaN is the largest
}

/// Writes the sums of the tile's columns, if requested.
template <class T>
__device__ __forceinline__ void write_column_sums(const CastJob<T>& job, int64_t tile_row, int64_t first_column,
                                                  const float (&sums)[kCastWarps][kCastTile]) {
  const int64_t own_column = first_column + threadIdx.x;
  if (job.end.sums && threadIdx.x < kCastTile && own_column < job.x.size(1)) {
    float total = 0;
#pragma unroll
    for (int w = 0; w < kCastWarps; ++w) total += sums[w][threadIdx.x];
    job.end.sums[tile_row * job.x.size(1) + own_column] = total;
  }
}

/// Writes the codes of the tile transposed. `words`: as in fp8_cast_kernel().
template <class T>
__device__ __forceinline__ void write_transposed(const CastJob<T>& job, int64_t first_row, int64_t first_column,
                                                 const uint32_t (&words)[kCastTile][kCastQuads + 1]) {
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const int64_t row = first_row + 4 * lane;
  if (row >= job.high) return;
#pragma unroll 4
  for (int c = warp; c < kCastTile; c += kCastWarps) {
    if (first_column + c >= job.wide) return;
    *reinterpret_cast<uint32_t*>(job.transposed + (first_column + c) * job.high + row) =
        words[c % 4 * kCastQuads + c / 4][lane];
  }
}

template <class Code, bool kRelu, class T>
__global__ void __launch_bounds__(kCastThreads) fp8_cast_kernel(CastJob<T> job) {
  // words[c'][quad] has four rows of one column of x. Column c is at index c' = c % 4 * kCastQuads + c / 4. With this
  // order, threads with adjacent c / 4 write to different banks.
  __shared__ uint32_t words[kCastTile][kCastQuads + 1];
  __shared__ float sums[kCastWarps][kCastTile];
  __shared__ uint32_t most_of_warp[kCastWarps];
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  const int64_t across = (job.wide + kCastTile - 1) / kCastTile;
  const int64_t first_row = blockIdx.x / across * kCastTile, first_column = blockIdx.x % across * kCastTile;
  const int64_t counted = job.state ? valid_rows(*job.state, job.x.size(0)) : job.x.size(0);
  const float factor = job.scale->factor;
  uint32_t most = 0;
  float sum[4] = {};
  const int64_t column = first_column + 4 * lane;
#pragma unroll
  for (int i = 0; i < kCastQuads / kCastWarps; ++i) {
    const int quad = i * kCastWarps + warp;
    uint32_t of_row[4];
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const int64_t row = first_row + 4 * quad + r;
      float numbers[4] = {};
      load_four(job.x, job.packs, row, column, numbers);
      if constexpr (kRelu) {
        float y[4] = {};
        load_four(job.end.y, job.packs, row, column, y);
#pragma unroll
        for (int j = 0; j < 4; ++j) numbers[j] = relu_gradient(job.end.factor, y[j], numbers[j]);
      }
      uint32_t word = 0;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        word |= static_cast<uint32_t>(Code(factor * numbers[j]).bits) << (8 * j);
        sum[j] += numbers[j];
        if (row < counted) most = max(most, __float_as_uint(numbers[j]) & 0x7fffffffu);
      }
      of_row[r] = word;
      if (job.rows && row < job.high && column < job.wide)
        *reinterpret_cast<uint32_t*>(job.rows + row * job.wide + column) = word;
    }
#pragma unroll
    for (uint32_t j = 0; j < 4; ++j) words[j * kCastQuads + lane][quad] = gather_bytes(of_row, j);
  }
  most = __reduce_max_sync(0xffffffffu, most);
  if (lane == 0) most_of_warp[warp] = most;
#pragma unroll
  for (int j = 0; j < 4; ++j) sums[warp][4 * lane + j] = sum[j];
  __syncthreads();
  if (threadIdx.x == 0) write_amax(most, most_of_warp, job.amax);
  write_column_sums(job, blockIdx.x / across, first_column, sums);
  if (job.transposed) write_transposed(job, first_row, first_column, words);
}

template <class T>
CastJob<T> cast_job(const Tensor& x, const Fp8Scaling& scaling, std::byte* rows, std::byte* transposed) {
  const auto view = x.view<const T, 2>();
  return {view,
          cuda::takes_packs<4>(view),
          nullptr,
          scaling.scale,
          reinterpret_cast<uint32_t*>(scaling.amax),
          rows,
          transposed,
          fp8_padded(x.dim(0)),
          fp8_padded(x.dim(1)),
          {}};
}

template <bool kRelu, class T>
void launch_cast(Context& ctx, Fp8Format format, const CastJob<T>& job) {
  const int64_t blocks = (job.high + kCastTile - 1) / kCastTile * ((job.wide + kCastTile - 1) / kCastTile);
  cuda::launch(ctx, "fp8_cast", cuda::Grid{blocks, kCastThreads},
               format == Fp8Format::e4m3 ? fp8_cast_kernel<Fp8E4M3, kRelu, T> : fp8_cast_kernel<Fp8E5M2, kRelu, T>,
               job);
}

}  // namespace

void cuda::fp8_cast(Context& ctx, Tensor x, bool samples, const Fp8Scaling& scaling, std::byte* rows,
                    std::byte* transposed) {
  dispatch_float(x.dtype(), [&]<class T>() {
    CastJob<T> job = cast_job<T>(x, scaling, rows, transposed);
    if (samples) job.state = ctx.state();
    launch_cast<false>(ctx, scaling.format, job);
  });
}

void cuda::fp8_cast_gradient(Context& ctx, Tensor d_y, const Fp8GradientEnd& end, const Fp8Scaling& scaling,
                             std::byte* rows, std::byte* transposed) {
  float* const sums = end.d_bias ? end.scratch->data<float>() : nullptr;
  dispatch_float(d_y.dtype(), [&]<class T>() {
    CastJob<T> job = cast_job<T>(d_y, scaling, rows, transposed);
    job.end.sums = sums;
    if (!end.y) return launch_cast<false>(ctx, scaling.format, job);
    job.end.y = end.y->view<const T, 2>();
    job.end.factor = end.factor;
    job.packs = job.packs && takes_packs<4>(job.end.y);
    launch_cast<true>(ctx, scaling.format, job);
  });
  if (sums) add_bias_parts<float>(ctx, sums, (d_y.dim(0) + kCastTile - 1) / kCastTile, *end.d_bias);
}

}  // namespace hctr::ops
