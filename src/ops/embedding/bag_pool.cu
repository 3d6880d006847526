// Pooling kernels for weighted bags: a group of lanes per bag or key; the lanes split the elements of a vector.
#include "ops/embedding/bag_pool.h"

#include "core/device/launch.cuh"
#include "ops/embedding/embedding_vector.cuh"

namespace hctr::ops {
namespace {

using hctr::cuda::BlockRange;
constexpr int kBagThreads = 256;

__device__ float weight_at(const BagList& bags, int64_t p) { return bags.weights ? bags.weights[p] : 1.0f; }

/// 1 / divisor of a bag. Every lane of the group computes the same value.
__device__ float scale_of(const BagList& bags, BagPooling pooling, int32_t begin, int32_t end) {
  if (pooling == BagPooling::sum) return 1.0f;
  float weights = 0, squares = 0;
  for (int32_t p = begin; p < end; ++p) {
    const float weight = weight_at(bags, p);
    weights += weight;
    squares += weight * weight;
  }
  const float divisor = bag_divisor(pooling, weights, squares);
  return divisor == 0 ? 0.0f : 1.0f / divisor;
}

template <class Stored, int Width>
__device__ void copy_key_rows(BlockRange range, BagList bags, const Stored* table, int64_t dim, View<float, 2> y,
                              int lanes) {
  const Group group(range, lanes);
  const int64_t first = bags.offsets[0], last = bags.offsets[bags.bags];
  for (int64_t i = group.index; i < bags.most; i += group.count) {
    const int64_t row = first + i < last ? bags.rows[first + i] : 0;
    for (int64_t e = group.lane * Width; e < dim; e += lanes * Width)
      store_fragment<Width>(y.row(i) + e, row == 0 ? Fragment<Width>{} : load_fragment<Width>(table + row * dim + e));
  }
}

template <class Stored, int Width>
__device__ void pool_sums(BlockRange range, BagList bags, const Stored* table, BagPooling pooling, int64_t dim,
                          View<float, 2> y, int lanes) {
  const Group group(range, lanes);
  for (int64_t bag = group.index; bag < bags.bags; bag += group.count) {
    const int32_t begin = bags.offsets[bag], end = bags.offsets[bag + 1];
    const float scale = scale_of(bags, pooling, begin, end);
    for (int64_t e = group.lane * Width; e < dim; e += lanes * Width) {
      Fragment<Width> sum{};
      for (int32_t p = begin; p < end; ++p) {
        const int64_t row = bags.rows[p];
        if (row == 0) continue;
        const float weight = weight_at(bags, p);
        const Fragment<Width> part = load_fragment<Width>(table + row * dim + e);
#pragma unroll
        for (int i = 0; i < Width; ++i) sum.v[i] += weight * part.v[i];
      }
#pragma unroll
      for (int i = 0; i < Width; ++i) sum.v[i] *= scale;
      store_fragment<Width>(y.row(bag) + e, sum);
    }
  }
}

template <class Stored>
__device__ void pool_largest(BlockRange range, BagList bags, const Stored* table, int64_t dim, View<float, 2> y,
                             int32_t* chosen, int lanes) {
  const Group group(range, lanes);
  for (int64_t bag = group.index; bag < bags.bags; bag += group.count) {
    const int32_t begin = bags.offsets[bag], end = bags.offsets[bag + 1];
    for (int64_t e = group.lane; e < dim; e += lanes) {
      float most = 0;
      int32_t at = -1;
      for (int32_t p = begin; p < end; ++p) {
        const int64_t row = bags.rows[p];
        if (row == 0) continue;
        const auto value = static_cast<float>(table[row * dim + e]);
        if (at >= 0 && !(value > most)) continue;
        most = value;
        at = p;
      }
      y.row(bag)[e] = most;
      chosen[bag * dim + e] = at;
    }
  }
}

__device__ void copy_key_gradients(BlockRange range, BagList bags, int64_t dim, View<const float, 2> dy, float* g,
                                   int lanes) {
  const Group group(range, lanes);
  const int64_t first = bags.offsets[0], last = bags.offsets[bags.bags];
  for (int64_t i = group.index; first + i < last; i += group.count)
    for (int64_t e = group.lane; e < dim; e += lanes) g[(first + i) * dim + e] = dy.row(i)[e];
}

template <int Width>
__device__ void spread_gradients(BlockRange range, BagList bags, BagPooling pooling, int64_t dim,
                                 View<const float, 2> dy, const int32_t* chosen, float* g, int lanes) {
  const Group group(range, lanes);
  for (int64_t bag = group.index; bag < bags.bags; bag += group.count) {
    const int32_t begin = bags.offsets[bag], end = bags.offsets[bag + 1];
    const float scale = pooling == BagPooling::max ? 1.0f : scale_of(bags, pooling, begin, end);
    for (int64_t e = group.lane * Width; e < dim; e += lanes * Width) {
      const Fragment<Width> of_bag = load_fragment<Width>(dy.row(bag) + e);
      for (int32_t p = begin; p < end; ++p) {
        const float weight = weight_at(bags, p) * scale;
        Fragment<Width> part;
#pragma unroll
        for (int i = 0; i < Width; ++i)
          part.v[i] = pooling != BagPooling::max       ? weight * of_bag.v[i]
                      : chosen[bag * dim + e + i] == p ? of_bag.v[i]
                                                       : 0.0f;
        store_fragment<Width>(g + p * dim + e, part);
      }
    }
  }
}

/// Computes weight gradients with one warp per bag.
template <class Stored>
__device__ void find_weight_gradients(BlockRange range, BagList bags, const Stored* table, BagPooling pooling,
                                      int64_t dim, View<const float, 2> dy, float* to) {
  const Group group(range, 32);
  float* const dw = to - bags.offsets[0];
  for (int64_t bag = group.index; bag < bags.bags; bag += group.count) {
    const int32_t begin = bags.offsets[bag], end = bags.offsets[bag + 1];
    const float scale = scale_of(bags, pooling, begin, end);
    float sum = 0;
    for (int32_t p = begin; p < end; ++p) {
      const int64_t row = bags.rows[p];
      float dot = 0;
      if (row != 0)
        for (int64_t e = group.lane; e < dim; e += 32) dot += static_cast<float>(table[row * dim + e]) * dy.row(bag)[e];
      for (int distance = 16; distance > 0; distance /= 2) dot += __shfl_down_sync(0xffffffffu, dot, distance);
      dot = __shfl_sync(0xffffffffu, dot, 0);
      sum += bags.weights[p] * dot;
      if (group.lane == 0) dw[p] = dot;
    }
    __syncwarp();
    for (int32_t p = begin + group.lane; p < end; p += 32)
      dw[p] = weight_gradient(pooling, dw[p], bags.weights[p], scale, sum);
  }
}

bool in_fours(int64_t dim, const Tensor& y) {
  return dim % 4 == 0 && y.row_stride() % 4 == 0 && reinterpret_cast<uintptr_t>(y.bytes()) % 16 == 0;
}

}  // namespace

namespace cuda {

using hctr::cuda::grid_for;
using hctr::cuda::launch_lockstep;

namespace {

/// Calls body.operator()<Width>(lanes) with Width 4 if the vectors allow it, else 1.
template <class Body>
void with_width(int64_t dim, const Tensor& y, const Body& body) {
  if (in_fours(dim, y))
    body.template operator()<4>(lanes_for(dim, 4));
  else
    body.template operator()<1>(lanes_for(dim, 1));
}

int64_t blocks_for(int64_t items, int lanes) { return grid_for(items * lanes, kBagThreads).blocks; }

}  // namespace

void pool_bags(Context& ctx, BagList bags, RowMemory table, BagPooling pooling, Tensor y, int32_t* chosen) {
  const int64_t dim = y.dim(1);
  const auto out = y.matrix<float>();
  dispatch_float(table.dtype, [&]<class Stored>() {
    const auto* rows = table.as<const Stored>();
    if (pooling == BagPooling::max) {
      const int lanes = lanes_for(dim, 1);
      return launch_lockstep<pool_largest<Stored>, kBagThreads>(ctx, "pool_largest", blocks_for(bags.bags, lanes), bags,
                                                                rows, dim, out, chosen, lanes);
    }
    with_width(dim, y, [&]<int Width>(int lanes) {
      if (pooling == BagPooling::none)
        launch_lockstep<copy_key_rows<Stored, Width>, kBagThreads>(ctx, "copy_key_rows", blocks_for(bags.most, lanes),
                                                                   bags, rows, dim, out, lanes);
      else
        launch_lockstep<pool_sums<Stored, Width>, kBagThreads>(ctx, "pool_sums", blocks_for(bags.bags, lanes), bags,
                                                               rows, pooling, dim, out, lanes);
    });
  });
}

void key_gradients(Context& ctx, BagList bags, BagPooling pooling, Tensor dy, const int32_t* chosen, float* g) {
  const int64_t dim = dy.dim(1);
  const auto from = dy.matrix<const float>();
  if (pooling == BagPooling::none) {
    const int lanes = lanes_for(dim, 1);
    return launch_lockstep<copy_key_gradients, kBagThreads>(ctx, "copy_key_gradients", blocks_for(bags.most, lanes),
                                                            bags, dim, from, g, lanes);
  }
  with_width(dim, dy, [&]<int Width>(int lanes) {
    launch_lockstep<spread_gradients<Width>, kBagThreads>(ctx, "spread_gradients", blocks_for(bags.bags, lanes), bags,
                                                          pooling, dim, from, chosen, g, lanes);
  });
}

void weight_gradients(Context& ctx, BagList bags, RowMemory table, BagPooling pooling, Tensor dy, float* dw) {
  dispatch_float(table.dtype, [&]<class Stored>() {
    launch_lockstep<find_weight_gradients<Stored>, kBagThreads>(ctx, "weight_gradients", blocks_for(bags.bags, 32),
                                                                bags, table.as<const Stored>(), pooling, dy.dim(1),
                                                                dy.matrix<const float>(), dw);
  });
}

}  // namespace cuda
}  // namespace hctr::ops
