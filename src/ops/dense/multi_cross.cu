// Kernels of the DCN cross network in vector form (multi_cross_layout.h has the formulas). A warp processes a few
// samples at a time and loads each weight once for these samples. One forward kernel and one backward kernel compute
// all layers. Sums over the batch are computed per part of the rows; then the partial sums are added in order. The
// backward kernel also computes the partial sums if they fit in registers (multi_cross_backward.cuh). Otherwise a
// separate kernel computes them.
#include "ops/dense/multi_cross.h"

#include <algorithm>

#include "ops/common/element_loops.cuh"
#include "ops/common/part_totals.cuh"
#include "ops/common/reduce.cuh"
#include "ops/dense/multi_cross_backward.cuh"
#include "ops/dense/multi_cross_layout.h"

namespace hctr::ops {
namespace {

constexpr int kRows = 4, kLayersAtOnce = 8, kWarps = 8;  // kRows: samples per warp, for large batches

template <class T>
struct Pointers {
  T* w[kMostCrossLayers];
  T* b[kMostCrossLayers];
  int layers;
};

template <class T>
Pointers<T> pointers_of(const CrossWeights& weights) {
  Pointers<T> pointers{};
  for (const Tensor& w : weights.w) {
    pointers.b[pointers.layers] = weights.b[static_cast<size_t>(pointers.layers)].data<T>();
    pointers.w[pointers.layers++] = w.data<T>();
  }
  return pointers;
}

/// Reads element k of the weights or biases of the kLayersAtOnce layers from layer `first` on. The loads run
/// concurrently. Past the last layer, reads the last layer.
template <class T>
__device__ void read_layers(T* const* of, int first, int layers, int64_t k, float (&to)[kLayersAtOnce]) {
#pragma unroll
  for (int l = 0; l < kLayersAtOnce; ++l) to[l] = static_cast<float>(of[min(first + l, layers - 1)][k]);
}

/// Computes B_L and q in one block. Each thread always sums the same columns, so the summation order is fixed.
template <class T>
__global__ void __launch_bounds__(1024)
    cross_constants_kernel(const __grid_constant__ Pointers<const T> weights, int64_t dim, float* bias_sum, float* q) {
  cuda::start_early();
  __shared__ float of_warps[32][kLayersAtOnce];
  const int layers = weights.layers, thread = static_cast<int>(threadIdx.x), warp = thread / 32, lane = thread % 32;
  for (int first = 0; first < layers; first += kLayersAtOnce) {
    float dot[kLayersAtOnce] = {};
    for (int64_t k = thread; k < dim; k += blockDim.x) {
      float w[kLayersAtOnce], b[kLayersAtOnce], sum = first == 0 ? 0 : bias_sum[k];
      read_layers(weights.w, first, layers, k, w);
      read_layers(weights.b, first, layers, k, b);
#pragma unroll
      for (int l = 0; l < kLayersAtOnce; ++l) {
        dot[l] += sum * w[l];
        if (first + l < layers) sum += b[l];
      }
      bias_sum[k] = sum;
    }
#pragma unroll
    for (int l = 0; l < kLayersAtOnce; ++l) {
      const float sum = cuda::warp_sum(dot[l]);
      if (lane == l) of_warps[warp][l] = sum;
    }
    __syncthreads();
    if (warp < kLayersAtOnce && first + warp < layers) {  // one warp per layer
      const float total = cuda::warp_sum(of_warps[lane][warp]);
      if (lane == 0) q[first + warp] = total;
    }
    __syncthreads();  // the next layers overwrite of_warps
  }
}

/// Forward kernel. R: samples that a warp processes at a time.
template <int V, int R, class T>
__global__ void __launch_bounds__(kWarps * 32, 2)
    cross_kernel(View<const T, 2> x, const __grid_constant__ Pointers<const T> weights, const float* bias_sum,
                 const float* q, float* products, View<T, 2> y, bool scores) {
  cuda::start_early_in_scoring(scores);
  const int lane = static_cast<int>(threadIdx.x) % 32, layers = weights.layers;
  const int64_t rows = x.size(0), dim = x.size(1), warps = cuda::thread_count() / 32;
  for (int64_t turn = cuda::thread_index() / 32; turn * R < rows; turn += warps) {
    const cuda::Turn at{turn * R, rows};
    float scale[R];
    for (float& each : scale) each = 1;
    for (int first = 0; first < layers; first += kLayersAtOnce) {
      float dot[R][kLayersAtOnce] = {};
      for (int64_t k = lane * V; k < dim; k += 32 * V) {
        cuda::Pack<T, V> in[R], w[kLayersAtOnce];
        if (k + V <= dim) {  // one test for all loads, so that they run concurrently
#pragma unroll
          for (int r = 0; r < R; ++r) in[r] = cuda::load_pack<V>(x.row(at.row(r)) + k);
#pragma unroll
          for (int l = 0; l < kLayersAtOnce; ++l) w[l] = cuda::load_pack<V>(weights.w[min(first + l, layers - 1)] + k);
        } else {
#pragma unroll
          for (int r = 0; r < R; ++r) in[r] = cuda::load_part_of_pack<V>(x.row(at.row(r)) + k, dim - k);
#pragma unroll
          for (int l = 0; l < kLayersAtOnce; ++l)
            w[l] = cuda::load_part_of_pack<V>(weights.w[min(first + l, layers - 1)] + k, dim - k);
        }
#pragma unroll
        for (int l = 0; l < kLayersAtOnce; ++l)
#pragma unroll
          for (int r = 0; r < R; ++r)
#pragma unroll
            for (int j = 0; j < V; ++j) dot[r][l] += static_cast<float>(in[r].at[j]) * static_cast<float>(w[l].at[j]);
      }
#pragma unroll
      for (int l = 0; l < kLayersAtOnce; ++l) {
        if (first + l >= layers) break;
        const float constant = q[first + l];
#pragma unroll
        for (int r = 0; r < R; ++r) {
          const float p = cuda::warp_sum(dot[r][l]);
          scale[r] += scale[r] * p + constant;
          if (lane == 0 && at.there(r)) products[(at.first + r) * layers + first + l] = p;
        }
      }
    }
#pragma unroll 2
    for (int64_t k = lane * V; k < dim; k += 32 * V) {
      float bias[V] = {}, out[R][V] = {};
      cuda::read<V>(bias_sum + k, dim - k, bias);
#pragma unroll
      for (int r = 0; r < R; ++r) cuda::read<V>(x.row(at.row(r)) + k, dim - k, out[r]);
#pragma unroll
      for (int r = 0; r < R; ++r) {
#pragma unroll
        for (int j = 0; j < V; ++j) out[r][j] = out[r][j] * scale[r] + bias[j];
        if (at.there(r)) cuda::write<V>(y.row(at.first + r) + k, dim - k, out[r]);
      }
    }
  }
}

/// Computes the scalars c_l (`gradients`) and c_l s_l (`slopes`) of every sample, and dx unless dx is null.
template <int V, class T>
__global__ void cross_backward_kernel(View<const T, 2> x, const __grid_constant__ Pointers<const T> weights,
                                      const float* q, const float* products, View<const T, 2> dy, float* slopes,
                                      float* gradients, View<T, 2> dx) {
  extern __shared__ float factors_of_warps[];  // c_l s_l: [warp, row, layer]
  const int lane = static_cast<int>(threadIdx.x) % 32, layers = weights.layers;
  float* factors = factors_of_warps + static_cast<int>(threadIdx.x) / 32 * kRows * layers;
  const int64_t rows = x.size(0), dim = x.size(1), warps = cuda::thread_count() / 32;
  for (int64_t turn = cuda::thread_index() / 32; turn * kRows < rows; turn += warps) {
    const cuda::Turn at{turn * kRows, rows};
    float dot[kRows] = {};
    for (int64_t k = lane * V; k < dim; k += 32 * V)
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        float in[V] = {}, gradient[V] = {};
        cuda::read<V>(x.row(at.row(r)) + k, dim - k, in);
        cuda::read<V>(dy.row(at.row(r)) + k, dim - k, gradient);
#pragma unroll
        for (int j = 0; j < V; ++j) dot[r] += in[j] * gradient[j];
      }
#pragma unroll
    for (int r = 0; r < kRows; ++r) dot[r] = cuda::warp_sum(dot[r]);

    __syncwarp();  // every lane has read the factors of the previous iteration
    const float scale = cuda::write_scalars(at, layers, q, products, dot, factors, {slopes, gradients});
    __syncwarp();
    if (dx.data == nullptr) continue;
    float scales[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) scales[r] = __shfl_sync(0xffffffffu, scale, r);
    for (int64_t k = lane * V; k < dim; k += 32 * V) {
      float out[kRows][V] = {};
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        cuda::read<V>(dy.row(at.row(r)) + k, dim - k, out[r]);
#pragma unroll
        for (int j = 0; j < V; ++j) out[r][j] *= scales[r];
      }
      for (int l = 0; l < layers; ++l) {
        float w[V] = {};
        cuda::read<V>(weights.w[l] + k, dim - k, w);
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          const float factor = factors[r * layers + l];
#pragma unroll
          for (int j = 0; j < V; ++j) out[r][j] += factor * w[j];
        }
      }
#pragma unroll
      for (int r = 0; r < kRows; ++r)
        if (at.there(r)) cuda::write<V>(dx.row(at.first + r) + k, dim - k, out[r]);
    }
  }
}

/// Sums over one part of the samples, for one tile of columns. The blocks of the first tile also sum c.
template <int V, class T>
__global__ void cross_parts_kernel(View<const T, 2> x, View<const T, 2> dy, const float* slopes, const float* gradients,
                                   int layers, int64_t rows_per_part, int64_t tiles, int64_t part_width, float* parts) {
  constexpr int kAtOnce = 8;
  const int64_t part = blockIdx.x / tiles, tile = blockIdx.x % tiles, dim = x.size(1);
  const int64_t begin = part * rows_per_part, end = min(begin + rows_per_part, x.size(0));
  float* sums = parts + part * part_width;
  const int64_t k = (tile * blockDim.x + threadIdx.x) * V;
  if (k < dim) {
    for (int first = 0; first < layers; first += kAtOnce) {
      float dw[kAtOnce][V] = {}, db[V] = {};
#pragma unroll 2
      for (int64_t b = begin; b < end; ++b) {
        float in[V] = {}, gradient[V] = {};
        cuda::read<V>(x.row(b) + k, dim - k, in);
        if (first == 0) cuda::read<V>(dy.row(b) + k, dim - k, gradient);
#pragma unroll
        for (int l = 0; l < kAtOnce; ++l) {
          const float slope = first + l < layers ? slopes[b * layers + first + l] : 0.0f;
#pragma unroll
          for (int j = 0; j < V; ++j) dw[l][j] += slope * in[j];
        }
#pragma unroll
        for (int j = 0; j < V; ++j) db[j] += gradient[j];
      }
#pragma unroll
      for (int l = 0; l < kAtOnce; ++l)
#pragma unroll
        for (int j = 0; j < V; ++j)
          if (first + l < layers && k + j < dim) sums[(first + l) * dim + k + j] = dw[l][j];
#pragma unroll
      for (int j = 0; j < V; ++j)
        if (first == 0 && k + j < dim) sums[layers * dim + k + j] = db[j];
    }
  }
  if (tile == 0 && threadIdx.x < static_cast<unsigned>(layers)) {
    float c = 0;
#pragma unroll 4
    for (int64_t b = begin; b < end; ++b) c += gradients[b * layers + threadIdx.x];
    sums[(layers + 1) * dim + threadIdx.x] = c;
  }
}

/// Computes dw and db from the sums over all samples, one thread per column.
template <class T>
__global__ void cross_weights_kernel(const float* totals, const __grid_constant__ Pointers<const T> weights,
                                     int64_t dim, const __grid_constant__ Pointers<float> d_weights) {
  const int layers = weights.layers;
  const float* c = totals + (layers + 1) * dim;
  for (int64_t k = cuda::thread_index(); k < dim; k += cuda::thread_count()) {
    if (layers <= kLayersAtOnce) {  // does the same as the loop below, but with concurrent loads
      float w[kLayersAtOnce], b[kLayersAtOnce], dw[kLayersAtOnce], slopes[kLayersAtOnce], bias = 0;
      read_layers(weights.w, 0, layers, k, w);
      read_layers(weights.b, 0, layers, k, b);
#pragma unroll
      for (int l = 0; l < kLayersAtOnce; ++l) {
        const int layer = min(l, layers - 1);
        dw[l] = totals[layer * dim + k];
        slopes[l] = c[layer];
      }
      float gradient = totals[layers * dim + k];
#pragma unroll
      for (int l = 0; l < kLayersAtOnce; ++l) {
        if (l >= layers) continue;
        d_weights.w[l][k] = dw[l] + slopes[l] * bias;
        bias += b[l];
      }
#pragma unroll
      for (int l = kLayersAtOnce - 1; l >= 0; --l) {
        if (l >= layers) continue;
        d_weights.b[l][k] = gradient;
        gradient += slopes[l] * w[l];
      }
      continue;
    }
    float bias = 0;
    for (int l = 0; l < layers; ++l) {
      d_weights.w[l][k] = totals[l * dim + k] + c[l] * bias;
      bias += static_cast<float>(weights.b[l][k]);
    }
    float gradient = totals[layers * dim + k];
    for (int l = layers - 1; l >= 0; --l) {
      d_weights.b[l][k] = gradient;
      gradient += c[l] * static_cast<float>(weights.w[l][k]);
    }
  }
}

template <int V, class T>
bool weights_take_packs(const CrossWeights& weights) {
  bool packs = true;
  for (const Tensor& w : weights.w)
    packs = packs && cuda::takes_packs<V>(View<const T, 2>{w.data<const T>(), {1, w.elements()}, 0});
  return packs;
}

/// The grid with one warp per `each` rows and kWarps warps per block. Blocks get fewer warps if there would otherwise
/// be fewer blocks than multiprocessors.
cuda::Grid warps_for(int64_t rows, int each, size_t shared_per_warp) {
  const int64_t turns = (rows + each - 1) / each;
  const auto warps = std::clamp<int64_t>(turns / hctr::cuda::multiprocessors(), 1, kWarps);
  cuda::Grid grid = cuda::grid_for(turns * 32, static_cast<int>(warps) * 32);
  grid.shared_bytes = shared_per_warp * static_cast<size_t>(warps);
  return grid;
}

}  // namespace

void cuda::multi_cross(Context& ctx, Tensor x, CrossWeights weights, Tensor scratch, Tensor y) {
  const CrossLayout layout(x.dim(0), x.dim(1), static_cast<int64_t>(weights.w.size()));
  float* memory = scratch.data<float>();
  dispatch_float(x.dtype(), [&]<class T>() {
    constexpr int V = 4;
    const Pointers<const T> pointers = pointers_of<const T>(weights);
    const View<const T, 2> from = x.view<const T, 2>();
    const View<T, 2> to = y.view<T, 2>();
    const bool packs = takes_packs<V>(from) && takes_packs<V>(to) && weights_take_packs<V, T>(weights) &&
                       reinterpret_cast<uintptr_t>(memory) % 16 == 0;
    launch(ctx, "cross_constants", early({1, 1024, 0}), cross_constants_kernel<T>, pointers, layout.dim,
           memory + layout.bias_sum, memory + layout.constants);
    // For a small batch, one sample per warp has lower latency; the cache serves repeated weight loads.
    const auto start = [&]<int R>() {
      launch(ctx, "multi_cross", early_in_scoring(warps_for(layout.batch, R, 0)),
             packs ? cross_kernel<V, R, T> : cross_kernel<1, R, T>, from, pointers, memory + layout.bias_sum,
             memory + layout.constants, memory + layout.products, to, is_scoring());
    };
    if (layout.batch < hctr::cuda::blocks_of_device(2 * kWarps))
      start.template operator()<1>();
    else
      start.template operator()<kRows>();
  });
}

void cuda::multi_cross_backward(Context& ctx, Tensor x, CrossWeights weights, Tensor dy, Tensor scratch,
                                std::optional<Tensor> dx, CrossWeights d_weights) {
  const CrossLayout layout(x.dim(0), x.dim(1), static_cast<int64_t>(weights.w.size()));
  const int layers = static_cast<int>(layout.layers);
  float* memory = scratch.data<float>();
  dispatch_float(x.dtype(), [&]<class T>() {
    constexpr int V = 4;
    const Pointers<const T> pointers = pointers_of<const T>(weights);
    const View<const T, 2> from = x.view<const T, 2>(), gradient = dy.view<const T, 2>();
    const View<T, 2> to = dx ? dx->view<T, 2>() : View<T, 2>{nullptr, {0, 0}, 0};
    const bool in_packs = takes_packs<V>(from) && takes_packs<V>(gradient);
    const int64_t rows_per_part = (layout.batch + layout.parts - 1) / layout.parts;
    if (in_packs && takes_packs<V>(to) && OnePassCross::takes(layout.layers, layout.dim))
      return launch(ctx, "multi_cross_backward", Grid{layout.parts, OnePassCross::threads(layout.dim), 0},
                    cross_one_pass_kernel<T, Pointers<const T>>, from, pointers, memory + layout.constants,
                    memory + layout.products, gradient, rows_per_part, layout.part_width, memory + layout.part_sums,
                    to);
    const bool packs = in_packs && takes_packs<V>(to) && weights_take_packs<V, T>(weights);
    launch(ctx, "multi_cross_backward",
           warps_for(layout.batch, kRows, static_cast<size_t>(kRows * layers) * sizeof(float)),
           packs ? cross_backward_kernel<V, T> : cross_backward_kernel<1, T>, from, pointers, memory + layout.constants,
           memory + layout.products, gradient, memory + layout.slopes, memory + layout.gradients, to);
    const int64_t tiles = (chunks_per_row(layout.dim, in_packs ? V : 1) + 127) / 128;
    launch(ctx, "multi_cross_backward parts", Grid{layout.parts * tiles, 128, 0},
           in_packs ? cross_parts_kernel<V, T> : cross_parts_kernel<1, T>, from, gradient, memory + layout.slopes,
           memory + layout.gradients, layers, rows_per_part, tiles, layout.part_width, memory + layout.part_sums);
  });
  dispatch_float(x.dtype(), [&]<class T>() {
    start_last(ctx, [&](Lockstep& launches) {
      Context last = launches.next();
      launch_totals<float>(
          last, "multi_cross_backward totals",
          {memory + layout.part_sums, layout.parts, layout.part_width, layout.part_width, memory + layout.totals});
      launch(last, "multi_cross_backward weights", grid_for(layout.dim), cross_weights_kernel<T>,
             memory + layout.totals, pointers_of<const T>(weights), layout.dim, pointers_of<float>(d_weights));
    });
  });
}

}  // namespace hctr::ops
