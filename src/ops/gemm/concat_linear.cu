// Kernels of concat_linear(). Each input is read and written once, at memory bandwidth. Forward, a warp processes
// kConcatLinearRows rows and loads each weight once for these rows. Backward, a thread keeps the weights of its columns
// in registers, iterates over rows, and accumulates wgrads and bias gradients; a second kernel adds the partial sums.
#include "ops/gemm/concat_linear.h"

#include <algorithm>
#include <vector>

#include "core/device/profiler.h"
#include "ops/common/reduce.cuh"
#include "ops/gemm/concat_linear.cuh"

namespace hctr::ops {
namespace {

constexpr int kConcatLinearRows = 4;

template <class T>
struct ConcatPart {
  View<const T, 2> x;
  const T* w;
  int64_t w_step;
  bool packs, packs_of_w;
};

template <class T>
struct ConcatParts {
  ConcatPart<T> at[kMostConcatParts];
  int count;
};

/// Reads min(V, left) weights. `whole`: the weights are contiguous and aligned for one load.
template <int V, class T>
__device__ void read_weights(const T* w, int64_t step, bool whole, int64_t left, float (&to)[V]) {
  if (whole) return cuda::read<V>(w, left, to);
#pragma unroll
  for (int v = 0; v < V; ++v)
    if (v < left) to[v] = static_cast<float>(w[v * step]);
}

/// Adds one input's contribution to the lane's sums, for kConcatLinearRows rows from row `first` on. Past the end, the
/// last row is used again.
template <int V, class T>
__device__ void add_products(const ConcatPart<T>& part, int64_t first, int lane, float (&sum)[kConcatLinearRows]) {
  const int64_t last = part.x.size(0) - 1, columns = part.x.size(1);
  for (int64_t k = lane * V; k < columns; k += 32 * V) {
    cuda::Pack<T, V> in[kConcatLinearRows];
    if (k + V <= columns) {  // one test for all loads, so that the loads overlap
#pragma unroll
      for (int r = 0; r < kConcatLinearRows; ++r)
        in[r] = *reinterpret_cast<const cuda::Pack<T, V>*>(part.x.row(min(first + r, last)) + k);
    } else {
#pragma unroll
      for (int r = 0; r < kConcatLinearRows; ++r)
#pragma unroll
        for (int v = 0; v < V; ++v)
          in[r].at[v] = k + v < columns ? part.x.row(min(first + r, last))[k + v] : static_cast<T>(0.0f);
    }
    float w[V] = {};
    read_weights<V>(part.w + k * part.w_step, part.w_step, part.packs_of_w, columns - k, w);
#pragma unroll
    for (int r = 0; r < kConcatLinearRows; ++r)
#pragma unroll
      for (int v = 0; v < V; ++v) sum[r] += static_cast<float>(in[r].at[v]) * w[v];
  }
}

template <class T>
__global__ void __launch_bounds__(256, 3)
    concat_linear_kernel(const __grid_constant__ ConcatParts<T> parts, const T* bias, View<T, 2> y, bool scores) {
  cuda::start_early_in_scoring(scores);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t rows = y.size(0), warps = cuda::thread_count() / 32;
  for (int64_t first = cuda::thread_index() / 32 * kConcatLinearRows; first < rows;
       first += warps * kConcatLinearRows) {
    float sum[kConcatLinearRows] = {};
    for (int p = 0; p < parts.count; ++p)
      if (parts.at[p].packs)
        add_products<cuda::kConcatPack<T>>(parts.at[p], first, lane, sum);
      else
        add_products<1>(parts.at[p], first, lane, sum);
#pragma unroll
    for (int r = 0; r < kConcatLinearRows; ++r) {
      float total = cuda::warp_sum(sum[r]);
      if (bias) total += static_cast<float>(*bias);
      if (lane == 0 && first + r < rows) y.row(first + r)[0] = static_cast<T>(total);
    }
  }
}

/// One input of the backward pass. `w` and the sums point to the input's first column.
template <class T>
struct BackwardInput {
  View<const T, 2> x;
  View<T, 2> d_x;  // null: not requested
  const T* w;
  float *d_w_sums, *d_bias_sums;  // d_bias_sums: null unless the gradient passes through a ReLU
  float factor;                   // scale of the dropout after the ReLU; 1: no dropout
  bool packs;
};

template <class T>
struct BackwardInputs {
  BackwardInput<T> at[kMostConcatParts];
  int32_t first_tile[kMostConcatParts + 1] = {};
  int count = 0;
};

constexpr int kBackwardThreads = 256, kBackwardWarps = kBackwardThreads / 32;

/// Sums the N values per thread in `shared` over the warps of a block. The results are in the first warp's elements.
template <int N>
__device__ void sum_over_warps(float (*shared)[kBackwardThreads]) {
  const int thread = static_cast<int>(threadIdx.x), warp = thread / 32;
  __syncthreads();
  for (int half = kBackwardWarps / 2; half > 0; half /= 2) {
    if (warp < half) {
#pragma unroll
      for (int i = 0; i < N; ++i) shared[i][thread] += shared[i][thread + 32 * half];
    }
    __syncthreads();
  }
}

/// V columns of an input from `column` on. kWhole: all V columns exist, so that loads need no bounds checks.
template <int V, bool kRelu, bool kWhole, class T>
struct BackwardColumns {
  // a copy, so that it stays in registers: a reference would be read again after each store
  const BackwardInput<T> input;
  int64_t column, left;
  float w[V] = {}, sums[2 * V + 1] = {};  // sums: V sums for d_w, V for the upstream bias gradient, then the sum of d_y

  __device__ void load_weights(int64_t step) {
#pragma unroll
    for (int v = 0; v < V; ++v)
      if (kWhole || v < left) w[v] = static_cast<float>(input.w[(column + v) * step]);
  }
  __device__ cuda::Pack<T, V> load(int64_t row) const {
    const T* from = input.x.row(row) + column;
    if constexpr (kWhole)
      return cuda::load_pack<V>(from);
    else
      return cuda::load_part_of_pack<V>(from, left);
  }
  __device__ void add_row(int64_t row, const cuda::Pack<T, V>& in, float gradient) {
    float out[V];
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const auto x = static_cast<float>(in.at[v]);
      sums[v] += x * gradient;
      const float product = gradient * w[v];
      if constexpr (kRelu) {
        out[v] = static_cast<float>(static_cast<T>(x > 0 ? input.factor * product : 0.0f));
        sums[V + v] += out[v];
      } else {
        out[v] = product;
      }
    }
    sums[2 * V] += gradient;
    if (input.d_x.data == nullptr) return;
    T* to = input.d_x.row(row) + column;
    if constexpr (kWhole) {
      cuda::store_as_one(to, out);
    } else {
#pragma unroll
      for (int v = 0; v < V; ++v)
        if (v < left) to[v] = static_cast<T>(out[v]);
    }
  }
  /// Processes rows [begin, end): each warp processes every eighth row, kAtOnce rows at a time.
  __device__ void add_rows(int64_t begin, int64_t end, const T* d_y, int64_t d_y_step) {
    constexpr int kAtOnce = 4;
    for (int64_t first = begin + threadIdx.x / 32; first < end; first += kAtOnce * kBackwardWarps) {
      cuda::Pack<T, V> in[kAtOnce];
      float gradient[kAtOnce];
#pragma unroll
      for (int r = 0; r < kAtOnce; ++r) in[r] = load(min(first + r * kBackwardWarps, end - 1));
#pragma unroll
      for (int r = 0; r < kAtOnce; ++r)
        gradient[r] = static_cast<float>(d_y[min(first + r * kBackwardWarps, end - 1) * d_y_step]);
#pragma unroll
      for (int r = 0; r < kAtOnce; ++r)
        if (first + r * kBackwardWarps < end) add_row(first + r * kBackwardWarps, in[r], gradient[r]);
    }
  }
};

/// Computes the gradients of V columns per lane for rows [begin, end).
template <int V, bool kRelu, class T>
__device__ void backward_tile(const BackwardInput<T>& input, const T* d_y, int64_t d_y_step, int64_t w_step, int tile,
                              int64_t begin, int64_t end, int64_t sums_at, float* d_y_sum,
                              float (*shared)[kBackwardThreads]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t column = (int64_t{tile} * 32 + lane) * V, left = input.x.size(1) - column;
  const auto add_up = [&]<bool kWhole>() {
    BackwardColumns<V, kRelu, kWhole, T> columns{input, column, left};
    columns.load_weights(w_step);
    columns.add_rows(begin, end, d_y, d_y_step);
#pragma unroll
    for (int i = 0; i < 2 * V + 1; ++i) shared[i][threadIdx.x] = columns.sums[i];
  };
  if (left >= V)
    add_up.template operator()<true>();
  else
    add_up.template operator()<false>();
  sum_over_warps<2 * V + 1>(shared);
  if (threadIdx.x >= 32) return;
#pragma unroll
  for (int v = 0; v < V; ++v)
    if (v < left) {
      input.d_w_sums[sums_at + column + v] = shared[v][lane];
      if constexpr (kRelu) input.d_bias_sums[sums_at + column + v] = shared[V + v][lane];
    }
  if (lane == 0 && d_y_sum) *d_y_sum = shared[2 * V][0];
}

/// A block processes one tile of 32 * V columns of one input, for one part of the rows.
template <class T>
__global__ void __launch_bounds__(kBackwardThreads)
    concat_linear_backward_kernel(const __grid_constant__ BackwardInputs<T> inputs, const T* d_y, int64_t d_y_step,
                                  int64_t w_step, int64_t rows, int64_t parts, int64_t part_width, float* d_y_sums) {
  cuda::start_early();
  constexpr int V = cuda::kConcatPack<T>;
  __shared__ float shared[2 * V + 1][kBackwardThreads];
  const int tiles = inputs.first_tile[inputs.count], tile = static_cast<int>(blockIdx.x) % tiles;
  const int64_t part = blockIdx.x / static_cast<unsigned>(tiles), per_part = (rows + parts - 1) / parts;
  const int64_t begin = min(part * per_part, rows), end = min(begin + per_part, rows), at = part * part_width;
  int i = 0;
  while (i + 1 < inputs.count && tile >= inputs.first_tile[i + 1]) ++i;
  const BackwardInput<T>& own = inputs.at[i];
  const auto run = [&]<int kWidth, bool kRelu>() {
    backward_tile<kWidth, kRelu>(own, d_y, d_y_step, w_step, tile - inputs.first_tile[i], begin, end, at,
                                 tile == 0 ? d_y_sums + at : nullptr, shared);
  };
  if (own.d_bias_sums)
    own.packs ? run.template operator()<V, true>() : run.template operator()<1, true>();
  else
    own.packs ? run.template operator()<V, false>() : run.template operator()<1, false>();
}

template <int V, class T>
bool vector_takes_packs(const T* data, int64_t step) {
  return step == 1 && reinterpret_cast<uintptr_t>(data) % (sizeof(T) * V) == 0;
}

}  // namespace

void cuda::concat_linear(Context& ctx, const std::vector<Tensor>& x, Tensor w, std::optional<Tensor> bias, Tensor y) {
  dispatch_float(y.dtype(), [&]<class T>() {
    constexpr int V = kConcatPack<T>;
    ConcatParts<T> parts{};
    const T* of_part = w.data<const T>();
    const int64_t step = w.row_stride();
    for (const Tensor& part : x) {
      const View<const T, 2> view = part.view<const T, 2>();
      parts.at[parts.count++] = {view, of_part, step, takes_packs<V>(view), vector_takes_packs<V>(of_part, step)};
      of_part += part.dim(1) * step;
    }
    launch(ctx, "concat_linear",
           early_in_scoring(grid_for((y.rows() + kConcatLinearRows - 1) / kConcatLinearRows * 32)),
           concat_linear_kernel<T>, parts, bias ? bias->data<const T>() : nullptr, y.view<T, 2>(), is_scoring());
  });
}

void cuda::concat_linear_backward(Context& ctx, Tensor w, Tensor d_y, const std::vector<ConcatLinearInput>& inputs,
                                  Tensor d_w, std::optional<Tensor> d_bias, Tensor scratch) {
  const int64_t rows = d_y.rows(), width = w.dim(0), parts = concat_linear_parts(rows, width),
                part_width = concat_linear_part_width(width);
  // Layout of each part's partial sums: for d_w, for the upstream biases, for d_y.
  float *d_w_sums = scratch.data<float>(), *bias_sums = d_w_sums + width, *d_y_sums = bias_sums + width;
  dispatch_float(d_y.dtype(), [&]<class T>() {
    constexpr int V = kConcatPack<T>;
    const int64_t step = w.row_stride();
    BackwardInputs<T> list;
    int64_t first = 0;
    for (const ConcatLinearInput& input : inputs) {
      const View<const T, 2> x = input.x.view<const T, 2>();
      const View<T, 2> d_x = input.d_x ? input.d_x->template view<T, 2>() : View<T, 2>{nullptr, {0, 0}, 0};
      const bool packs = takes_packs<V>(x) && takes_packs<V>(d_x);
      list.at[list.count] = {x,
                             d_x,
                             w.data<const T>() + first * step,
                             d_w_sums + first,
                             input.below_relu ? bias_sums + first : nullptr,
                             input.below_relu ? input.below_relu->factor : 1,
                             packs};
      const int64_t tiles = (chunks_per_row(x.size(1), packs ? V : 1) + 31) / 32;
      list.first_tile[list.count + 1] = list.first_tile[list.count] + static_cast<int32_t>(std::max<int64_t>(tiles, 1));
      ++list.count;
      first += x.size(1);
      count_flops(ctx, (input.d_x ? 4.0 : 2.0) * static_cast<double>(rows) * static_cast<double>(x.size(1)));
    }
    launch(ctx, "concat_linear_backward", early({parts * list.first_tile[list.count], kBackwardThreads, 0}),
           concat_linear_backward_kernel<T>, list, d_y.data<const T>(), d_y.row_stride(), step, rows, parts, part_width,
           d_y_sums);
  });
  add_concat_totals(ctx, "concat_linear_backward totals", d_w_sums, parts, inputs, d_w, d_bias);
}

}  // namespace hctr::ops
