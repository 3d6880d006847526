// Kernels of the pairwise interaction. There are three implementations: tensor cores (interaction_tensor_cores.cuh);
// multiply-adds in full f32, one warp per sample (interaction_multiply_add.cuh); and the general kernels of this file.
// The general kernels load a sample's vectors into shared memory once, as f32. Forward, a thread computes a tile of 4 x
// 4 dot products in registers. Backward, a thread computes one column of 8 gradients. A sample with few tiles is
// processed by a warp, a sample with many tiles by a block. Samples too large for shared memory are read from global
// memory.
#include "ops/dense/interaction.h"

#include "ops/common/element_loops.cuh"
#include "ops/common/part_totals.cuh"
#include "ops/common/reduce.cuh"
#include "ops/dense/interaction.cuh"
#include "ops/dense/interaction_multiply_add.cuh"
#include "ops/dense/interaction_tensor_cores.cuh"

namespace hctr::ops {
namespace {

constexpr int kDotTile = kSideOfPairs, kStrip = 8;

/// Copies the vectors of sample b to `to` with `lanes` threads. Vectors in `to` are `stride` elements apart.
template <int V, class T>
__device__ inline void load_vectors(const Vectors<T>& x, int64_t b, int lane, int lanes, int stride, float* to) {
  const int per_vector = static_cast<int>(cuda::chunks_per_row(x.dim, V));
  for (int n = lane; n < x.count * per_vector; n += lanes) {
    const int i = n / per_vector, k = n % per_vector * V;
    float in[V] = {};
    cuda::read<V>(x.at(b, i) + k, x.dim - k, in);
#pragma unroll
    for (int j = 0; j < V; ++j)
      if (k + j < x.dim) to[i * stride + k + j] = in[j];
  }
}

/// One side of a tile consists of the vectors i, i + side, i + 2 side, ..., so that adjacent threads read adjacent
/// vectors. The odd stride between vectors avoids bank conflicts.
template <int V, class T>
__global__ void interaction_kernel(Vectors<T> x, int lanes, View<T, 2> y) {
  extern __shared__ __align__(16) float memory[];
  const int stride = x.dim | 1, per_block = static_cast<int>(blockDim.x) / lanes;
  const int group = static_cast<int>(threadIdx.x) / lanes, lane = static_cast<int>(threadIdx.x) % lanes;
  float* vectors = memory + group * x.count * stride;
  const int side = (x.count + kDotTile - 1) / kDotTile, tiles = side * (side + 1) / 2;
  const int64_t rows = y.size(0);
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * per_block; first < rows;
       first += static_cast<int64_t>(gridDim.x) * per_block) {
    const int64_t b = first + group;
    __syncthreads();  // every thread has finished the previous samples
    if (b < rows) load_vectors<V>(x, b, lane, lanes, stride, vectors);
    __syncthreads();
    if (b >= rows) continue;  // this test follows the barriers, because every thread must reach both barriers
    T* out = y.row(b);
    for (int k = lane; k < x.dim; k += lanes) out[k] = x.dense.row(b)[k];
    if (lane == 0) out[x.dim + pairs_of(x.count)] = static_cast<T>(0.0f);
    for (int n = lane; n < tiles; n += lanes) {
      int i, j;
      tile_at(n, i, j);
      const float *left[kDotTile], *right[kDotTile];
#pragma unroll
      for (int t = 0; t < kDotTile; ++t) {  // clamps indices past the end; the results are not written
        left[t] = vectors + min(i + t * side, x.count - 1) * stride;
        right[t] = vectors + min(j + t * side, x.count - 1) * stride;
      }
      float dot[kDotTile][kDotTile] = {};
#pragma unroll 2
      for (int k = 0; k < x.dim; ++k) {
        float a[kDotTile], c[kDotTile];
#pragma unroll
        for (int t = 0; t < kDotTile; ++t) {
          a[t] = left[t][k];
          c[t] = right[t][k];
        }
#pragma unroll
        for (int s = 0; s < kDotTile; ++s)
#pragma unroll
          for (int t = 0; t < kDotTile; ++t) dot[s][t] += a[s] * c[t];
      }
      for_pairs(i, j, side, x.count, [&](int one, int other, int s, int t) {
        out[x.dim + pairs_of(one) + other] = static_cast<T>(dot[s][t]);
      });
    }
  }
}

/// Shared memory: the vectors, then the symmetric matrix of dy, whose rows are zero-padded to whole strips.
template <int V, class T>
__global__ void interaction_backward_kernel(Vectors<T> x, View<const T, 2> dy, int lanes, VectorGradients<T> dx) {
  extern __shared__ __align__(16) float memory[];
  const int per_block = static_cast<int>(blockDim.x) / lanes;
  const int group = static_cast<int>(threadIdx.x) / lanes, lane = static_cast<int>(threadIdx.x) % lanes;
  const int strips = (x.count + kStrip - 1) / kStrip, matrix_row = strips * kStrip, stride = (x.dim + 3) / 4 * 4;
  float* vectors = memory + group * x.count * (stride + matrix_row);
  float* matrix = vectors + x.count * stride;
  const int64_t rows = dy.size(0);
  for (int64_t first = static_cast<int64_t>(blockIdx.x) * per_block; first < rows;
       first += static_cast<int64_t>(gridDim.x) * per_block) {
    const int64_t b = first + group;
    __syncthreads();
    if (b < rows) {
      load_vectors<V>(x, b, lane, lanes, stride, vectors);
      const T* pairs = dy.row(b) + x.dim;
      for (int n = lane; n < x.count * matrix_row; n += lanes) {
        const int i = n / matrix_row, j = n % matrix_row;
        matrix[n] = i == j || j >= x.count ? 0.0f : static_cast<float>(pairs[pairs_of(max(i, j)) + min(i, j)]);
      }
    }
    __syncthreads();
    if (b >= rows) continue;
    for (int n = lane; n < strips * x.dim; n += lanes) {
      const int strip = n / x.dim * kStrip, k = n % x.dim;
      float sum[kStrip] = {};
#pragma unroll 2
      for (int j = 0; j < x.count; ++j) {
        const float v = vectors[j * stride + k];
        const float4 low = *reinterpret_cast<const float4*>(matrix + j * matrix_row + strip);
        const float4 high = *reinterpret_cast<const float4*>(matrix + j * matrix_row + strip + 4);
        sum[0] += low.x * v;
        sum[1] += low.y * v;
        sum[2] += low.z * v;
        sum[3] += low.w * v;
        sum[4] += high.x * v;
        sum[5] += high.y * v;
        sum[6] += high.z * v;
        sum[7] += high.w * v;
      }
      if (strip == 0) sum[0] += static_cast<float>(dy.row(b)[k]);
#pragma unroll
      for (int s = 0; s < kStrip; ++s) {
        if (strip + s >= x.count) continue;
        if (T* to = dx.at(b, strip + s)) to[k] = static_cast<T>(sum[s]);
      }
    }
  }
}

/// Forward for samples too large for shared memory: one warp per pair.
template <class T>
__global__ void interaction_large_kernel(Vectors<T> x, View<T, 2> y) {
  const int64_t rows = y.size(0), pairs = pairs_of(x.count), warps = cuda::thread_count() / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int64_t n = cuda::thread_index() / 32; n < rows * (pairs + 1); n += warps) {
    const int64_t b = n / (pairs + 1), pair = n % (pairs + 1);
    T* out = y.row(b);
    if (pair == pairs) {  // the columns of y outside the pairs: the dense vector and the zero
      for (int k = lane; k < x.dim; k += 32) out[k] = x.dense.row(b)[k];
      if (lane == 0) out[x.dim + pairs] = static_cast<T>(0.0f);
      continue;
    }
    int i, j;
    tile_at(static_cast<int>(pair), i, j);
    const T *one = x.at(b, i + 1), *other = x.at(b, j);
    float dot = 0;
    for (int k = lane; k < x.dim; k += 32) dot += static_cast<float>(one[k]) * static_cast<float>(other[k]);
    dot = cuda::warp_sum(dot);
    if (lane == 0) out[x.dim + pair] = static_cast<T>(dot);
  }
}

/// Backward for samples too large for shared memory: one thread per element.
template <class T>
__global__ void interaction_large_backward_kernel(Vectors<T> x, View<const T, 2> dy, VectorGradients<T> dx) {
  const int64_t rows = dy.size(0), elements = static_cast<int64_t>(x.count) * x.dim;
  for (int64_t n = cuda::thread_index(); n < rows * elements; n += cuda::thread_count()) {
    const int64_t b = n / elements;
    const int i = static_cast<int>(n % elements / x.dim), k = static_cast<int>(n % elements % x.dim);
    T* to = dx.at(b, i);
    if (!to) continue;
    const T* pairs = dy.row(b) + x.dim;
    float sum = i == 0 ? static_cast<float>(dy.row(b)[k]) : 0.0f;
#pragma unroll 4
    for (int j = 0; j < x.count; ++j)
      if (j != i) sum += static_cast<float>(pairs[pairs_of(max(i, j)) + min(i, j)]) * static_cast<float>(x.at(b, j)[k]);
    to[k] = static_cast<T>(sum);
  }
}

template <class T>
Vectors<T> vectors_of(const Tensor& dense, const Tensor& slots) {
  return {dense.matrix<const T>(), slots.matrix<const T>(), static_cast<int>(dense.dim(1)),
          static_cast<int>(slots.dim(1) + 1)};
}

/// Whether every vector of every sample is aligned to V elements.
template <int V, class T>
bool packs(const Vectors<T>& x) {
  return cuda::takes_packs<V>(x.dense) && cuda::takes_packs<V>(x.slots) && (x.dim % V == 0 || x.count <= 2);
}

/// The launch configuration of the tensor core kernels. `sums`: also computes column sums of the dense gradient.
/// tensor_cores_for() returns none in these cases: compute capability below 8.0; f32 if the Runtime does not allow
/// TF32; too many or too long vectors; rows not aligned to 16 bytes.
struct TensorCores {
  InteractionLayout layout;
  int tiles;
  cuda::Grid grid;
};
template <class T>
std::optional<TensorCores> tensor_cores_for(const Runtime& runtime, const Vectors<T>& x, View<const T, 2> y,
                                            const VectorGradients<T>* dx, bool sums) {
  constexpr int kPerChunk = 16 / sizeof(T);
  constexpr size_t kMostWarps = 4, kBlockBytes = 100 * 1024;  // allows two blocks per multiprocessor
  if (sizeof(T) == 4 && !runtime.options().tf32) return std::nullopt;
  if (x.count < 2 || x.count > 16 * InteractionLayout::kMostTiles || x.dim % kPerChunk != 0 ||
      x.dim > InteractionLayout::kMostChunks * kPerChunk || !cuda::takes_packs<kPerChunk>(x.dense) ||
      !cuda::takes_packs<kPerChunk>(x.slots) || !cuda::takes_packs<kPerChunk>(y))
    return std::nullopt;
  if (dx && (!cuda::takes_packs<kPerChunk>(dx->dense) || !cuda::takes_packs<kPerChunk>(dx->slots))) return std::nullopt;
  if (hctr::cuda::compute_capability() < 80) return std::nullopt;
  const auto layout = InteractionLayout::of<T>(x.dim, x.count, dx != nullptr, sums);
  const size_t bytes = static_cast<size_t>(layout.total) * 16;
  if (bytes > hctr::cuda::most_shared_bytes()) return std::nullopt;
  const size_t warps = std::clamp<size_t>(kBlockBytes / bytes, 1, kMostWarps);
  const int64_t blocks = (y.size(0) + static_cast<int64_t>(warps) - 1) / static_cast<int64_t>(warps);
  return TensorCores{layout,
                     InteractionLayout::tiles(x.count),
                     {std::min(blocks, sums ? kMostBlockParts : hctr::cuda::blocks_of_device(32)),
                      static_cast<int>(warps) * 32, bytes * warps}};
}

/// Whether the f32 multiply-add kernels support these samples.
bool multiplies_by_warps(const Vectors<float>& x, View<const float, 2> y, const VectorGradients<float>* dx) {
  if (x.count < 2 || x.count > kMostMultiplied || x.dim % 4 != 0 || x.dim > 4 * InteractionLayout::kMostChunks)
    return false;
  const bool packed = cuda::takes_packs<4>(x.dense) && cuda::takes_packs<4>(x.slots) && cuda::takes_packs<4>(y) &&
                      (!dx || (cuda::takes_packs<4>(dx->dense) && cuda::takes_packs<4>(dx->slots)));
  return packed && hctr::cuda::compute_capability() >= 80;
}

/// Grid of blocks with two warps, one sample per warp.
cuda::Grid grid_of_samples(int64_t samples, const InteractionLayout& layout) {
  constexpr int kWarps = 2;
  return cuda::early({std::min((samples + kWarps - 1) / kWarps, hctr::cuda::blocks_of_device(32)), 32 * kWarps,
                      static_cast<size_t>(layout.total * kWarps) * sizeof(uint4)});
}

/// Calls body with the number of tiles as a template argument.
template <class Body>
void dispatch_tiles(int tiles, const Body& body) {
  static_assert(InteractionLayout::kMostTiles == 4);
  switch (tiles) {
    case 1:
      return body.template operator()<1>();
    case 2:
      return body.template operator()<2>();
    case 3:
      return body.template operator()<3>();
    default:
      return body.template operator()<4>();
  }
}

/// Calls body with GradientLanes::rows as a template argument.
template <class Body>
void dispatch_rows(int rows, const Body& body) {
  switch (rows) {
    case 4:
      return body.template operator()<4>();
    case 8:
      return body.template operator()<8>();
    case 16:
      return body.template operator()<16>();
    default:
      return body.template operator()<kMostMultiplied>();
  }
}

/// Threads per sample and the grid, for `work` independent items and `bytes_per_sample` of shared memory per sample.
/// groups_for() returns none if a sample exceeds the shared memory of a block.
struct Groups {
  int lanes;
  cuda::Grid grid;
};
std::optional<Groups> groups_for(int64_t rows, int64_t work, size_t bytes_per_sample) {
  constexpr size_t kBlockBytes = 48 * 1024;  // allows several blocks per multiprocessor
  if (bytes_per_sample > hctr::cuda::most_shared_bytes()) return std::nullopt;
  const int lanes = work <= 64 ? 32 : static_cast<int>(std::min<int64_t>(256, (work + 31) / 32 * 32));
  const auto fitting = static_cast<int>(kBlockBytes / std::max<size_t>(1, bytes_per_sample));
  const int samples = lanes == 32 ? std::clamp(fitting, 1, 8) : 1;
  return Groups{lanes,
                {std::min<int64_t>((rows + samples - 1) / samples, hctr::cuda::blocks_of_device(64)), lanes * samples,
                 bytes_per_sample * static_cast<size_t>(samples)}};
}

/// Launches the backward kernels that do not use tensor cores.
template <class T>
void start_backward(Context& ctx, const Vectors<T>& x, View<const T, 2> dy, const VectorGradients<T>& dx) {
  using cuda::launch;
  constexpr int V = 16 / sizeof(T);
  const int64_t samples = dy.size(0);
  if constexpr (std::is_same_v<T, float>)
    if (multiplies_by_warps(x, dy, &dx)) {
      const auto each = GradientLanes::of(x.dim, x.count);
      const InteractionLayout layout = multiply_add_layout(x.dim, x.count, each);
      return dispatch_rows(each.rows, [&]<int kRows>() {
        launch(ctx, "interaction_backward", grid_of_samples(samples, layout),
               interaction_backward_multiply_add_kernel<kRows>, x, layout, each.lanes, dy, dx);
      });
    }
  const int64_t strips = (x.count + kStrip - 1) / kStrip;
  const size_t bytes = static_cast<size_t>(x.count * ((x.dim + 3) / 4 * 4 + strips * kStrip)) * sizeof(float);
  // `work` is a sixteenth of the columns of all strips. A warp then processes, for example, four strips of 128 columns,
  // and a small sample does not occupy a whole block.
  if (const auto groups = groups_for(samples, strips * x.dim / 16, bytes))
    launch(ctx, "interaction_backward", groups->grid,
           packs<V>(x) ? interaction_backward_kernel<V, T> : interaction_backward_kernel<1, T>, x, dy, groups->lanes,
           dx);
  else
    launch(ctx, "interaction_backward", cuda::grid_for(samples * x.count * x.dim), interaction_large_backward_kernel<T>,
           x, dy, dx);
}

}  // namespace

void cuda::interaction(Context& ctx, Tensor dense, Tensor slots, Tensor y) {
  dispatch_float(dense.dtype(), [&]<class T>() {
    constexpr int V = 16 / sizeof(T);
    const Vectors<T> x = vectors_of<T>(dense, slots);
    if (const auto plan = tensor_cores_for<T>(ctx.runtime(), x, y.view<const T, 2>(), nullptr, false))
      return dispatch_tiles(plan->tiles, [&]<int kTiles>() {
        launch(ctx, "interaction", early(plan->grid), interaction_tensor_kernel<T, kTiles>, x, plan->layout,
               y.view<T, 2>());
      });
    if constexpr (std::is_same_v<T, float>)
      if (multiplies_by_warps(x, y.view<const T, 2>(), nullptr)) {
        const auto layout = InteractionLayout::of<T>(x.dim, x.count, false, false);
        return launch(ctx, "interaction", grid_of_samples(y.dim(0), layout), interaction_multiply_add_kernel, x, layout,
                      y.view<T, 2>());
      }
    const int64_t side = (x.count + kDotTile - 1) / kDotTile;
    const size_t bytes = static_cast<size_t>(x.count) * static_cast<size_t>(x.dim | 1) * sizeof(float);
    if (const auto groups = groups_for(dense.dim(0), side * (side + 1) / 2, bytes))
      launch(ctx, "interaction", groups->grid, packs<V>(x) ? interaction_kernel<V, T> : interaction_kernel<1, T>, x,
             groups->lanes, y.view<T, 2>());
    else
      launch(ctx, "interaction", grid_for(dense.dim(0) * (pairs_of(x.count) + 1) * 32), interaction_large_kernel<T>, x,
             y.view<T, 2>());
  });
}

void cuda::interaction_backward(Context& ctx, Tensor dense, Tensor slots, Tensor dy, std::optional<Tensor> d_dense,
                                std::optional<Tensor> d_slots, OverflowSearch search, std::optional<ReluEnd> below) {
  dispatch_float(dense.dtype(), [&]<class T>() {
    const Vectors<T> x = vectors_of<T>(dense, slots);
    const View<T, 2> none{nullptr, {0, 0}, 0};
    const VectorGradients<T> dx{d_dense ? d_dense->matrix<T>() : none, d_slots ? d_slots->matrix<T>() : none, x.dim};
    if (const auto plan = tensor_cores_for<T>(ctx.runtime(), x, dy.view<const T, 2>(), &dx, below.has_value())) {
      const DenseRelu relu{below ? below->factor : 0, below ? below->scratch.data<float>() : nullptr};
      dispatch_tiles(plan->tiles, [&]<int kTiles>() {
        launch(ctx, "interaction_backward", early(plan->grid), interaction_backward_tensor_kernel<T, kTiles>, x,
               plan->layout, dy.view<const T, 2>(), dx, relu, search);
      });
      if (below)
        dispatch_float(below->d_bias.dtype(),
                       [&]<class Out>() { add_bias_parts<Out>(ctx, relu.sums, plan->grid.blocks, below->d_bias); });
      return;
    }
    start_backward(ctx, x, dy.view<const T, 2>(), dx);
    if (below) ops::relu_bias_gradient(ctx, below->factor, dense, *d_dense, *d_dense, below->d_bias, below->scratch);
    if (d_slots) ops::find_overflow(ctx, *d_slots, search);
  });
}

}  // namespace hctr::ops
