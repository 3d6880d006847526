// The wgrads of several layers in one kernel, in full f32, for compute capability 9.0. The kernel of
// ops/gemm/f32_product.cuh processes the tiles of all GEMMs x^T d_y with equal numbers of k steps. Merging the GEMMs
// balances the load of the multiprocessors, even if a layer has few tiles.
#include "core/device/profiler.h"
#include "ops/gemm/f32_product.cuh"
#include "ops/gemm/weight_gradient.cuh"
#include "ops/gemm/weight_gradient.h"

namespace hctr::ops {
namespace {

using namespace hopper;

constexpr F32Tiles kWeightTiles = F32Tiles::square;
using F32WeightTiling = F32Tiling<true, kWeightTiles>;
using F32WeightTiles = WeightTiles<F32WeightTiling::kM, F32WeightTiling::kN>;

/// Template argument Product of the kernel: a list of GEMMs.
struct F32WeightProducts : DividedWeightProducts {
  struct Tile {
    int m, n, product;
  };

  template <class Tiles>
  __device__ Tile tile(int number) const {
    const int j = product_of(list, number);
    const int place = number - list.first_block[j], across = F32WeightTiles::across(list.jobs[j].out);
    return {place / across * Tiles::kM, place % across * Tiles::kN, j};
  }
  __device__ const CUtensorMap& map_a(const Tile& tile) const { return list.jobs[tile.product].x; }
  __device__ const CUtensorMap& map_b(const Tile& tile) const { return list.jobs[tile.product].d_y; }

  __device__ void prefetch_maps(int thread) const {
    if (thread < list.count) prefetch_tensormap(list.jobs[thread].x), prefetch_tensormap(list.jobs[thread].d_y);
  }

  template <class Tiles>
  __device__ void finish(int, const Tile& tile, int, const F32Places<Tiles>& places,
                         float (&own)[Tiles::kOwnRows][Tiles::kColumns], float*) const {
    const WeightProduct& product = list.jobs[tile.product];
    const F32Shape shape{product.in, product.out, product.batch};
    const View<float, 2> d_w{product.d_w, {product.in, product.out}, product.stride};
    if (has_fours(product))
      store_rows<Tiles, true>(shape, d_w, places, own);
    else
      store_rows<Tiles, false>(shape, d_w, places, own);
  }
};

int steps_of(const WeightProduct& product) {
  return (product.batch + F32WeightTiling::kDepth - 1) / F32WeightTiling::kDepth;
}

/// Launches GEMMs with equal numbers of steps together.
void start_f32_weight_gradients(Context& ctx, std::span<const LaunchQueue::Launch* const> launches) {
  constexpr const char* kName = "weight_gradient";
  HCTR_EXPECT(runs_f32_products(ctx), kName, " must run on a stream that has memory for partial sums");
  start_equal_products(launches, steps_of, [&](WeightProducts& list) {
    set_first_blocks<F32WeightTiles>(list);
    count_flops(ctx, flops_of(list));
    const int tiles = list.first_block[list.count], steps = steps_of(list.jobs[0]);
    const TileBlocks divided(kName, tiles, steps,
                             divide_f32_product(kWeightTiles, tiles, steps, hctr::cuda::multiprocessors()));
    const F32WeightProducts products{{list, divided.division, sum_exchange(ctx)}};
    using Storage = F32Storage<F32WeightTiling, F32WeightProducts::Tile>;
    hctr::cuda::launch(ctx, kName,
                       hctr::cuda::early({divided.blocks, F32WeightTiling::kThreads, shared_bytes<Storage>()}),
                       f32_product_kernel<F32WeightTiling, F32WeightProducts>, products);
  });
}

}  // namespace

void hopper::add_weight_gradient_f32(Context& ctx, Tensor x, Tensor d_y, Tensor d_w) {
  using hctr::cuda::tensor_map, hctr::cuda::Swizzle;
  constexpr int kSamples = F32WeightTiling::kDepth;
  const CUtensorMap map_x = tensor_map(x, F32WeightTiling::kM, kSamples, Swizzle::none);
  const CUtensorMap map_d_y = tensor_map(d_y, F32WeightTiling::kN, kSamples, Swizzle::none);
  add_weight_product(ctx, weight_product(x, map_x, d_y, map_d_y, d_w), start_f32_weight_gradients);
}

}  // namespace hctr::ops
