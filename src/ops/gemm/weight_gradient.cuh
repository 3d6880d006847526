// Helpers for the kernels that compute the wgrads of several layers. Only sources compiled for sm_90a include this
// file, as with ops/gemm/hopper.cuh.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "core/device/launch.cuh"
#include "core/device/tensor_map.cuh"
#include "ops/gemm/pipeline.cuh"
#include "ops/gemm/shared_storage.cuh"
#include "ops/gemm/tile_division.cuh"
#include "ops/gemm/weight_gradient.h"

namespace hctr::ops::hopper {

/// One GEMM x^T d_y of the list.
struct WeightProduct {
  CUtensorMap x, d_y;
  float* d_w;
  int64_t stride;
  int32_t in, out, batch;
};
using WeightProducts = hctr::cuda::JobList<WeightProduct>;

inline WeightProduct weight_product(const Tensor& x, const CUtensorMap& map_x, const Tensor& d_y,
                                    const CUtensorMap& map_d_y, const Tensor& d_w) {
  return {map_x,
          map_d_y,
          d_w.data<float>(),
          d_w.row_stride(),
          static_cast<int32_t>(x.dim(1)),
          static_cast<int32_t>(d_y.dim(1)),
          static_cast<int32_t>(x.dim(0))};
}

/// Several GEMMs with equal numbers of steps, whose tiles are divided evenly among blocks. Tile numbers are the block
/// numbers of `list`.
struct DividedWeightProducts {
  WeightProducts list;
  TileDivision division;
  SumExchange exchange;
};
static_assert(sizeof(DividedWeightProducts) <= 4096);  // kernel argument limit of all drivers

/// Index of the GEMM to which a tile (or block) number belongs.
__device__ inline int product_of(const WeightProducts& list, int32_t block) {
  int j = 0;
  while (j + 1 < list.count && block >= list.first_block[j + 1]) ++j;
  return j;
}

/// Result tiles of kTileRows x kTileColumns.
template <int kTileRows, int kTileColumns>
struct WeightTiles {
  static constexpr int kRows = kTileRows, kColumns = kTileColumns;
  static __host__ __device__ int across(int columns) { return (columns + kColumns - 1) / kColumns; }
  static __host__ __device__ int tiles(int rows, int columns) { return (rows + kRows - 1) / kRows * across(columns); }
  static int32_t tiles(const WeightProduct& product) { return tiles(product.in, product.out); }
};

/// A tile of a GEMM. `transposed`: the rows of the tile are columns of the result. `rows`, `columns`: numbers of rows
/// and columns from the tile's first element to the end of the result; the tile may have fewer.
struct WeightTile {
  const WeightProduct& product;
  bool transposed;
  int row, column, rows, columns;

  __device__ const CUtensorMap& map_of_rows() const { return transposed ? product.d_y : product.x; }
  __device__ const CUtensorMap& map_of_columns() const { return transposed ? product.x : product.d_y; }
};

/// Tiles of the result, or of the transposed result if that has fewer tiles. Square tiles are never transposed.
template <int kTileRows, int kTileColumns>
struct TurnedWeightTiles : WeightTiles<kTileRows, kTileColumns> {
  using Upright = WeightTiles<kTileRows, kTileColumns>;

  static __host__ __device__ bool transposes(const WeightProduct& product) {
    return kTileRows != kTileColumns &&
           Upright::tiles(product.out, product.in) < Upright::tiles(product.in, product.out);
  }
  static int32_t tiles(const WeightProduct& product) {
    return std::min(Upright::tiles(product.in, product.out), Upright::tiles(product.out, product.in));
  }
  static __device__ WeightTile tile(const WeightProducts& list, int number) {
    const int j = product_of(list, number);
    const WeightProduct& product = list.jobs[j];
    const bool transposed = transposes(product);
    const int of_rows = transposed ? product.out : product.in, of_columns = transposed ? product.in : product.out;
    const int place = number - list.first_block[j], across = Upright::across(of_columns);
    const int row = place / across * kTileRows, column = place % across * kTileColumns;
    return {product, transposed, row, column, of_rows - row, of_columns - column};
  }
};

/// Stores min(4, left) adjacent elements of the result. kFours requires has_fours() and an index that is a multiple of
/// four.
template <bool kFours>
__device__ inline void store_four(float* to, const float4& four, int left) {
  if constexpr (kFours) {
    if (left > 0) *reinterpret_cast<float4*>(to) = four;
  } else {
    if (left > 0) to[0] = four.x;
    if (left > 1) to[1] = four.y;
    if (left > 2) to[2] = four.z;
    if (left > 3) to[3] = four.w;
  }
}
/// Whether rows of the result consist of aligned 16-byte units, as in almost all models. A store of such a row needs
/// only one condition.
__device__ inline bool has_fours(const WeightProduct& product) {
  return product.stride % 4 == 0 && product.out % 4 == 0 && reinterpret_cast<uintptr_t>(product.d_w) % 16 == 0;
}

inline WeightProduct weight_product(const LaunchQueue::Launch& launch) {
  WeightProduct product;
  std::memcpy(static_cast<void*>(&product), launch.arguments.data(), sizeof product);
  return product;
}

/// Assigns a tile range to each GEMM of a list.
template <class Tiles>
void set_first_blocks(WeightProducts& list) {
  for (int j = 0; j < list.count; ++j) list.first_block[j + 1] = list.first_block[j] + Tiles::tiles(list.jobs[j]);
}

inline double flops_of(const WeightProducts& list) {
  double flops = 0;
  for (int j = 0; j < list.count; ++j) flops += 2.0 * list.jobs[j].batch * list.jobs[j].in * list.jobs[j].out;
  return flops;
}

/// Groups GEMMs by key(product), an int, with groups_of_equal(), and calls start(list) for each group.
template <class Key, class Start>
void start_equal_products(std::span<const LaunchQueue::Launch* const> launches, Key key, Start start) {
  std::vector<int> keys;
  for (const LaunchQueue::Launch* launch : launches) keys.push_back(key(weight_product(*launch)));
  for (const std::vector<size_t>& group : groups_of_equal(keys, WeightProducts::kMost)) {
    WeightProducts list;
    for (const size_t i : group) list.jobs[list.count++] = weight_product(*launches[i]);
    start(list);
  }
}

/// Adds a GEMM to the launch queue of the context. `start` reads the GEMM with weight_product().
inline void add_weight_product(Context& ctx, const WeightProduct& product, LaunchQueue::StartMerged start) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(&product), sizeof product);
  ctx.queue()->add({.start_merged = start, .name = "weight_gradient", .arguments = ctx.queue()->keep(bytes)});
}

}  // namespace hctr::ops::hopper
