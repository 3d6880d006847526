// The gradients of the weights of several layers in one kernel, for GPUs of compute capability 9.0.
//
// A block computes a tile of 128 x kN of one of the products x^T d_y. One warp copies boxes of 64 columns of 64 samples
// of both operands to a ring in shared memory; two groups of four warps multiply them, 64 rows of the result each. The
// samples, over which is summed, are not adjacent in either operand: the matrix instruction transposes both. Each
// element is summed over all samples in one place, so its bits do not depend on kN or on the other products.
#include "ops/weight_gradient.h"

#include <span>

#include "device/launch.cuh"
#include "device/profiler.h"
#include "device/tensor_map.cuh"
#include "ops/hopper.cuh"

namespace hctr::ops {
namespace {

using namespace hopper;

/// One of the products.
struct WeightProduct {
  CUtensorMap x, d_y;  // boxes of 64 x 64
  float* d_w;
  int64_t stride;
  int32_t in, out, batch;
};
using WeightProducts = hctr::cuda::JobList<WeightProduct>;

constexpr int kWeightBox = 64, kWeightBoxBytes = kWeightBox * kWeightBox * 2;
constexpr int kWeightGroups = 2, kWeightRows = 64 * kWeightGroups, kWeightThreads = 128 * kWeightGroups + 32;

template <int kN>
struct WeightTiling {
  static constexpr int kStageBytes = (kWeightGroups + kN / kWeightBox) * kWeightBoxBytes;
  static constexpr int kStages = 96 * 1024 / kStageBytes;  // so that a multiprocessor takes two blocks
  static constexpr size_t kSharedBytes = kStages * kStageBytes + 2 * kStages * sizeof(uint64_t) + 1024;
};

/// The tile of a block.
struct WeightTile {
  const WeightProduct& product;
  int row, column, steps;
};

template <int kN>
__device__ WeightTile weight_tile(const WeightProducts& list) {
  int j = 0;
  const auto block = static_cast<int32_t>(blockIdx.x);
  while (j + 1 < list.count && block >= list.first_block[j + 1]) ++j;
  const WeightProduct& product = list.jobs[j];
  const int tile = block - list.first_block[j], across = (product.out + kN - 1) / kN;
  return {product, tile / across * kWeightRows, tile % across * kN, (product.batch + kWeightBox - 1) / kWeightBox};
}

/// By one thread: both operands of a tile, step by step.
template <int kN>
__device__ void load_weight_operands(const WeightTile& tile, std::byte* ring, uint64_t* full, uint64_t* empty) {
  using Tiling = WeightTiling<kN>;
  int stage = 0;
  uint32_t parity = 0;
  for (int step = 0; step < tile.steps; ++step) {
    wait_for(empty + stage, parity ^ 1);
    std::byte* at = ring + stage * Tiling::kStageBytes;
    arrive_and_expect(full + stage, Tiling::kStageBytes);
    for (int i = 0; i < kWeightGroups; ++i, at += kWeightBoxBytes)
      load_box(at, tile.product.x, tile.row + kWeightBox * i, step * kWeightBox, full + stage);
    for (int i = 0; i < kN / kWeightBox; ++i, at += kWeightBoxBytes)
      load_box(at, tile.product.d_y, tile.column + kWeightBox * i, step * kWeightBox, full + stage);
    if (++stage == Tiling::kStages) stage = 0, parity ^= 1;
  }
}

/// Stores what the threads of a group hold of a tile.
template <int kN>
__device__ void store_weight_gradient(const WeightTile& tile, int group, const float (&d)[kN / 2]) {
  const WeightProduct& product = tile.product;
  const int thread = static_cast<int>(threadIdx.x) % 128, lane = thread % 32;
  const bool pairs = product.stride % 2 == 0 && reinterpret_cast<uintptr_t>(product.d_w) % 8 == 0;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = tile.row + 64 * group + 16 * (thread / 32) + lane / 4 + 8 * r;
    if (row >= product.in) continue;
    float* const to = product.d_w + row * product.stride;
#pragma unroll
    for (int j = 0; j < kN / 8; ++j) {
      const int column = tile.column + 8 * j + 2 * (lane % 4);
      const float first = d[4 * j + 2 * r], second = d[4 * j + 2 * r + 1];
      if (pairs && column + 1 < product.out) {
        *reinterpret_cast<float2*>(to + column) = make_float2(first, second);
      } else {
        if (column < product.out) to[column] = first;
        if (column + 1 < product.out) to[column + 1] = second;
      }
    }
  }
}

template <class T, int kN>
__global__ void __launch_bounds__(kWeightThreads, 2)
    weight_gradient_kernel(const __grid_constant__ WeightProducts list) {
  using Tiling = WeightTiling<kN>;
  extern __shared__ std::byte dynamic_of_weights[];
  const uint32_t misaligned = shared_address(dynamic_of_weights) % 1024;
  std::byte* const ring = dynamic_of_weights + (misaligned ? 1024 - misaligned : 0);
  auto* const full = reinterpret_cast<uint64_t*>(ring + Tiling::kStages * Tiling::kStageBytes);
  uint64_t* const empty = full + Tiling::kStages;
  if (threadIdx.x == 0) {
    for (int s = 0; s < Tiling::kStages; ++s) {
      init_barrier(full + s, 1);
      init_barrier(empty + s, kWeightGroups);
    }
    fence_barrier_init();
  }
  __syncthreads();
  hctr::cuda::start_early();

  const WeightTile tile = weight_tile<kN>(list);
  const int group = static_cast<int>(threadIdx.x) / 128;
  if (group == kWeightGroups) {
    if (threadIdx.x % 32 == 0) load_weight_operands<kN>(tile, ring, full, empty);
    return;
  }
  float d[kN / 2];
  int stage = 0, before = -1;
  uint32_t parity = 0;
  for (int step = 0; step < tile.steps; ++step) {
    wait_for(full + stage, parity);
    const std::byte* at = ring + stage * Tiling::kStageBytes;
    uint64_t first = describe_transposed(at + group * kWeightBoxBytes, kWeightBoxBytes);
    uint64_t second = describe_transposed(at + kWeightGroups * kWeightBoxBytes, kWeightBoxBytes);
    begin_products();
#pragma unroll
    for (int k = 0; k < kWeightBox / 16; ++k) {
      multiply<T, kN, true>(d, first, second, step > 0 || k > 0);
      first += 16 * 128 >> 4;  // 16 samples
      second += 16 * 128 >> 4;
    }
    commit_products();
    wait_for_products<1>();
    if (before >= 0 && threadIdx.x % 128 == 0) arrive(empty + before);
    before = stage;
    if (++stage == Tiling::kStages) stage = 0, parity ^= 1;
  }
  wait_for_products<0>();
  store_weight_gradient<kN>(tile, group, d);
}

int32_t tiles_with(int32_t n, const WeightProduct& product) {
  return (product.in + kWeightRows - 1) / kWeightRows * ((product.out + n - 1) / n);
}

template <class T, int kN>
void start_weight_products(Context& ctx, WeightProducts& list) {
  double flops = 0;
  for (int j = 0; j < list.count; ++j) {
    const WeightProduct& product = list.jobs[j];
    list.first_block[j + 1] = list.first_block[j] + tiles_with(kN, product);
    flops += 2.0 * product.batch * product.in * product.out;
  }
  count_flops(ctx, flops);
  hctr::cuda::launch(ctx, "weight_gradient",
                     hctr::cuda::early({list.first_block[list.count], kWeightThreads, WeightTiling<kN>::kSharedBytes}),
                     weight_gradient_kernel<T, kN>, list);
}

/// With wide tiles, unless narrow ones leave less to do for the multiprocessor that has most.
template <class T>
void start_weight_gradients(Context& ctx, std::span<const LaunchQueue::Launch* const> launches) {
  const int64_t processors = hctr::cuda::multiprocessors();
  for (size_t next = 0; next < launches.size();) {
    WeightProducts list;
    int64_t wide = 0, narrow = 0;
    for (; list.count < WeightProducts::kMost && next < launches.size(); ++list.count, ++next) {
      WeightProduct& product = list.jobs[list.count];
      std::memcpy(static_cast<void*>(&product), launches[next]->arguments.data(), sizeof product);
      wide += tiles_with(128, product);
      narrow += tiles_with(64, product);
    }
    const auto most = [&](int64_t tiles) { return (tiles + processors - 1) / processors; };
    if (64 * most(narrow) < 128 * most(wide))
      start_weight_products<T, 64>(ctx, list);
    else
      start_weight_products<T, 128>(ctx, list);
  }
}

}  // namespace

void hopper::add_weight_gradient(Context& ctx, Tensor x, Tensor d_y, Tensor d_w) {
  const WeightProduct product{hctr::cuda::tensor_map(x, kWeightBox, kWeightBox),
                              hctr::cuda::tensor_map(d_y, kWeightBox, kWeightBox),
                              d_w.data<float>(),
                              d_w.row_stride(),
                              static_cast<int32_t>(x.dim(1)),
                              static_cast<int32_t>(d_y.dim(1)),
                              static_cast<int32_t>(x.dim(0))};
  LaunchQueue::Launch launch{
      .start_merged = x.dtype() == DType::bf16 ? start_weight_gradients<BFloat16> : start_weight_gradients<Half>,
      .name = "weight_gradient"};
  launch.arguments.resize(sizeof product);
  std::memcpy(launch.arguments.data(), static_cast<const void*>(&product), sizeof product);
  ctx.last_launches()->next().queue()->add(std::move(launch));
}

}  // namespace hctr::ops
