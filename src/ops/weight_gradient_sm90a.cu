// The gradients of the weights of several layers in one kernel, for GPUs of compute capability 9.0.
//
// A block computes a tile of 128 x kN of one of the products x^T d_y. One warp copies boxes of 64 columns of 64 samples
// of both operands to a ring in shared memory; two groups of four warps multiply them, 64 rows of the result each. The
// samples, over which is summed, are not adjacent in either operand: the matrix instruction transposes both. Each
// element is summed over all samples in one place, so its bits do not depend on kN or on the other products.
#include "ops/weight_gradient.cuh"

#include <span>

#include "device/profiler.h"
#include "ops/weight_gradient.h"

namespace hctr::ops {
namespace {

using namespace hopper;

constexpr int kWeightGroups = 2, kWeightThreads = 128 * kWeightGroups + 32;

template <int kN>
using Stages = WeightStages<2, 64, 64 * kWeightGroups, kN>;

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
  using Boxes = Stages<kN>;
  extern __shared__ std::byte dynamic_of_weights[];
  const WeightRing<Boxes> ring(dynamic_of_weights);
  ring.init_barriers(kWeightGroups);
  hctr::cuda::start_early();

  const WeightTile tile = weight_tile<Boxes>(list);
  const int group = static_cast<int>(threadIdx.x) / 128;
  if (group == kWeightGroups) {
    if (threadIdx.x % 32 == 0) ring.load(tile);
    return;
  }
  float d[kN / 2];
  int stage = 0, before = -1;
  uint32_t parity = 0;
  for (int step = 0; step < tile.steps; ++step) {
    wait_for(ring.full + stage, parity);
    const std::byte* at = ring.boxes + stage * Boxes::kStageBytes;
    uint64_t first = describe_transposed(at + group * Boxes::kBoxBytes, Boxes::kBoxBytes);
    uint64_t second = describe_transposed(at + kWeightGroups * Boxes::kBoxBytes, Boxes::kBoxBytes);
    begin_products();
#pragma unroll
    for (int k = 0; k < Boxes::kSamples / 16; ++k) {
      multiply<T, kN, true>(d, first, second, step > 0 || k > 0);
      first += 16 * 128 >> 4;  // 16 samples
      second += 16 * 128 >> 4;
    }
    commit_products();
    wait_for_products<1>();
    if (before >= 0 && threadIdx.x % 128 == 0) arrive(ring.empty + before);
    before = stage;
    if (++stage == Boxes::kStages) stage = 0, parity ^= 1;
  }
  wait_for_products<0>();
  store_weight_gradient<kN>(tile, group, d);
}

template <class T, int kN>
void start_weight_products(Context& ctx, WeightProducts& list) {
  set_first_blocks<Stages<kN>>(list);
  count_flops(ctx, flops_of(list));
  hctr::cuda::launch(ctx, "weight_gradient",
                     hctr::cuda::early({list.first_block[list.count], kWeightThreads, Stages<kN>::kSharedBytes}),
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
      const WeightProduct& product = list.jobs[list.count] = weight_product(*launches[next]);
      wide += Stages<128>::tiles(product);
      narrow += Stages<64>::tiles(product);
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
  add_weight_product(ctx, Stages<64>::product(x, d_y, d_w),
                     x.dtype() == DType::bf16 ? start_weight_gradients<BFloat16> : start_weight_gradients<Half>);
}

}  // namespace hctr::ops
