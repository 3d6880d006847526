// A block has a part of the rows, whole. Its threads keep the packs of their columns of a few rows in registers: first
// they multiply them by the weights, then the row's logit and its gradient are known, and the same registers give the
// gradient of x and what the weights want of these rows. The last block to be done adds up the loss.
#include "ops/logit_loss.h"

#include <algorithm>
#include <bit>

#include "device/profiler.h"
#include "ops/concat_linear.cuh"
#include "ops/cross_entropy_rules.h"
#include "ops/logit_loss_parts.h"
#include "ops/one_column.cuh"
#include "ops/reduce.cuh"

namespace hctr::ops {
namespace {

constexpr int kLogitThreads = 256, kLogitRows = 4;  // rows that a thread has at a time
constexpr int kMostPacks = 2;                       // of a row that a thread has
constexpr size_t kMostTerms = 8;

/// A tensor of one column.
template <class T>
struct LogitColumn {
  T* data = nullptr;
  int64_t step = 0;
  __device__ T& operator[](int64_t row) const { return data[row * step]; }
};

template <class T>
struct LogitInput {
  View<const T, 2> x;
  View<T, 2> d_x;  // null: nobody needs it
  cuda::Strided<T> w;
  int64_t first_column;
  float factor;  // of dropout behind the ReLU
  bool packs_of_w, relu;
};

/// All arguments.
template <class T>
struct LogitPass {
  LogitInput<T> inputs[kMostConcatParts];
  int first_pack[kMostConcatParts + 1];  // of each input, among the packs of a row
  int count, lanes;                      // inputs; threads that have a row together
  const T* bias;
  LogitColumn<T> y, logits, d_logits;
  LogitColumn<const T> terms[kMostTerms];  // with y at number `of_layer`
  LogitColumn<T> d_terms[kMostTerms];      // that are not d_logits
  int term_count, of_layer, d_term_count;
  LogitColumn<const float> label;
  LogitColumn<float> probability;
  SampleFactor<float> factor;
  float weight;
  int64_t rows, rows_per_part, width, part_width;
  double* losses;  // of each part
  float *sums, *loss;
  int32_t* blocks_done;
};

/// What a thread has of one pack of columns.
template <int V, class T>
struct LogitPack {
  const T* x = nullptr;
  T* d_x = nullptr;
  int64_t x_stride = 0, d_x_stride = 0, left = 0;  // left: 0 behind the last pack
  float factor = 1;
  bool relu = false;
  float w[V] = {}, sums[2 * V] = {};  // sums: for d_w, for the bias below

  __device__ void take(const LogitPass<T>& pass, int number) {
    if (number >= pass.first_pack[pass.count]) return;
    int p = 0;
    while (number >= pass.first_pack[p + 1]) ++p;
    const LogitInput<T>& input = pass.inputs[p];
    const int64_t column = int64_t{number - pass.first_pack[p]} * V;
    left = input.x.size(1) - column;
    x = input.x.data + column;
    x_stride = input.x.row_stride;
    d_x = input.d_x.data ? input.d_x.data + column : nullptr;
    d_x_stride = input.d_x.row_stride;
    factor = input.factor;
    relu = input.relu;
    input.w.template read<V>(input.packs_of_w, column, left, w);
  }
  /// Of the rows first, first + step, ..., where those past `last` repeat it.
  __device__ void load(int64_t first, int64_t step, int64_t last, cuda::Pack<T, V> (&in)[kLogitRows]) const {
    if (left >= V) {  // one test for all loads, so that they are under way at the same time
#pragma unroll
      for (int r = 0; r < kLogitRows; ++r) in[r] = cuda::load_pack<V>(x + min(first + r * step, last) * x_stride);
    } else {
#pragma unroll
      for (int r = 0; r < kLogitRows; ++r)
        in[r] = cuda::load_part_of_pack<V>(x + min(first + r * step, last) * x_stride, left);
    }
  }
  __device__ float product(const cuda::Pack<T, V>& in) const {
    float sum = 0;
#pragma unroll
    for (int v = 0; v < V; ++v) sum += static_cast<float>(in.at[v]) * w[v];
    return sum;
  }
  __device__ void add_row(int64_t row, const cuda::Pack<T, V>& in, float gradient) {
    float out[V];
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const auto value = static_cast<float>(in.at[v]);
      sums[v] += value * gradient;
      // What the bias wants is the sum of what is stored.
      out[v] = static_cast<float>(static_cast<T>(!relu || value > 0 ? factor * (gradient * w[v]) : 0.0f));
      sums[V + v] += out[v];
    }
    if (d_x == nullptr) return;
    T* to = d_x + row * d_x_stride;
    if (left >= V) {
      cuda::store_as_one(to, out);
    } else {
#pragma unroll
      for (int v = 0; v < V; ++v)
        if (v < left) to[v] = static_cast<T>(out[v]);
    }
  }
};

/// What a lane knows of a row before its logit, and what it adds up over rows.
template <class T>
struct LogitRow {
  float label = 0, weight = 0, terms[kMostTerms] = {};
  double loss = 0;
  float d_sum = 0;

  __device__ void load(const LogitPass<T>& pass, int64_t row) {
    label = pass.label[row];
    weight = pass.factor(row, label);
#pragma unroll
    for (int i = 0; i < static_cast<int>(kMostTerms); ++i)
      if (i < pass.term_count && i != pass.of_layer) terms[i] = static_cast<float>(pass.terms[i][row]);
  }
  /// The gradient of the row's logit, given the product of the layer. `writes`: what the row has is stored.
  __device__ float finish(const LogitPass<T>& pass, const StepState& state, int64_t row, float product, bool writes) {
    if (pass.bias) product += static_cast<float>(*pass.bias);
    const T y = static_cast<T>(product);
    T logit = y;
    if (pass.term_count > 0) {
      float sum = 0;
#pragma unroll
      for (int i = 0; i < static_cast<int>(kMostTerms); ++i) {
        if (i >= pass.term_count) continue;
        const float term = i == pass.of_layer ? static_cast<float>(y) : terms[i];
        sum = i == 0 ? term : sum + term;
      }
      logit = static_cast<T>(sum);
    }
    const CrossEntropyTerm<float> term{static_cast<float>(logit), label, weight};
    const CrossEntropyTerm<float> sampled = term.sampled(state.log_negative_share);
    const bool counts = row < state.valid_samples;
    const float factor = pass.weight * state.loss_scale * inverse_count<float>(state.global_samples);
    const T gradient = static_cast<T>(counts ? sampled.gradient(factor) : 0.0f);
    if (writes) {
      if (counts) loss += static_cast<double>(sampled.loss());
      d_sum += static_cast<float>(gradient);
      pass.y[row] = y;
      if (pass.term_count > 0) pass.logits[row] = logit;
      pass.probability[row] = term.probability();
      pass.d_logits[row] = gradient;
      for (int i = 0; i < pass.d_term_count; ++i) pass.d_terms[i][row] = gradient;
    }
    return static_cast<float>(gradient);
  }
};

/// The loss and the sum of the gradients of this block's rows, of which lane r of the first warp of each group has a
/// part; then the loss of all blocks, by the last one.
template <class T>
__device__ void add_up_losses(const LogitPass<T>& pass, const StepState& state, const LogitRow<T>& own) {
  __shared__ double losses[kLogitThreads / 32][kLogitRows];
  __shared__ float d_sums[kLogitThreads / 32][kLogitRows];
  __shared__ bool is_last;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, groups = kLogitThreads / pass.lanes;
  if (thread % pass.lanes < kLogitRows) {
    losses[thread / pass.lanes][lane] = own.loss;
    d_sums[thread / pass.lanes][lane] = own.d_sum;
  }
  __syncthreads();
  if (thread == 0) {
    double loss = 0;
    float d_sum = 0;
    for (int g = 0; g < groups; ++g)
      for (int r = 0; r < kLogitRows; ++r) {
        loss += losses[g][r];
        d_sum += d_sums[g][r];
      }
    pass.losses[blockIdx.x] = loss;
    pass.sums[blockIdx.x * pass.part_width + 2 * pass.width] = d_sum;
    __threadfence();
    is_last = atomicAdd(pass.blocks_done, 1) == static_cast<int32_t>(gridDim.x) - 1;
  }
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  double sum = 0;
  for (int i = thread; i < static_cast<int>(gridDim.x); i += kLogitThreads) sum += __ldcg(pass.losses + i);
  sum = cuda::block_sum<kLogitThreads>(sum);
  if (thread != 0) return;
  *pass.loss = static_cast<float>(sum * inverse_count<double>(state.global_samples));
  *pass.blocks_done = 0;
}

/// The sums of this block's rows, for pack number `first` and the next pass.lanes - 1.
template <int V, class T>
__device__ void write_sums(const LogitPass<T>& pass, int first, const float (&own)[2 * V]) {
  __shared__ float shared[2 * V][kLogitThreads + 1];
  const int thread = static_cast<int>(threadIdx.x), group = thread / pass.lanes;
  __syncthreads();  // before what an earlier call wrote is overwritten
#pragma unroll
  for (int i = 0; i < 2 * V; ++i) shared[i][thread] = own[i];
  __syncthreads();
  for (int half = kLogitThreads / pass.lanes / 2; half > 0; half /= 2) {
    if (group < half) {
#pragma unroll
      for (int i = 0; i < 2 * V; ++i) shared[i][thread] += shared[i][thread + half * pass.lanes];
    }
    __syncthreads();
  }
  float* const sums = pass.sums + blockIdx.x * pass.part_width;
  for (int p = 0; p < pass.count; ++p) {
    const LogitInput<T>& input = pass.inputs[p];
    const int64_t begin = max(int64_t{first - pass.first_pack[p]} * V, int64_t{0}),
                  end = min(int64_t{first + pass.lanes - pass.first_pack[p]} * V, input.x.size(1));
    for (int64_t j = begin + thread; j < end; j += kLogitThreads) {
      const int from = static_cast<int>(j / V) + pass.first_pack[p] - first, v = static_cast<int>(j % V);
      sums[input.first_column + j] = shared[v][from];
      if (input.relu) sums[pass.width + input.first_column + j] = shared[V + v][from];
    }
  }
}

template <int K, class T>
__global__ void __launch_bounds__(kLogitThreads, 2)
    logit_loss_kernel(const StepState* at, const __grid_constant__ LogitPass<T> pass) {
  cuda::start_early();
  constexpr int V = cuda::kConcatPack<T>, R = kLogitRows;
  __shared__ float products[2][kLogitThreads / 32][R];
  const StepState state = *at;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, lanes = pass.lanes, warps = lanes / 32;
  const int groups = kLogitThreads / lanes, group = thread / lanes, first_warp = group * warps;
  const int64_t begin = min(blockIdx.x * pass.rows_per_part, pass.rows),
                end = min(begin + pass.rows_per_part, pass.rows);
  LogitPack<V, T> packs[K];
#pragma unroll
  for (int k = 0; k < K; ++k) packs[k].take(pass, k * lanes + thread % lanes);
  LogitRow<T> of_row;

  int turn = 0;
  for (int64_t block_first = begin; block_first < end; block_first += groups * R, turn ^= 1) {
    const int64_t first = block_first + group, mine = min(first + lane * groups, end - 1);
    cuda::Pack<T, V> in[K][R];
#pragma unroll
    for (int k = 0; k < K; ++k) packs[k].load(first, groups, end - 1, in[k]);
    if (lane < R) of_row.load(pass, mine);
#pragma unroll
    for (int r = 0; r < R; ++r) {
      float product = 0;
#pragma unroll
      for (int k = 0; k < K; ++k) product += packs[k].product(in[k][r]);
      product = cuda::warp_sum(product);
      if (lane == r) products[turn][thread / 32][r] = product;
    }
    __syncthreads();  // one a turn is enough, since the next turn writes to other places
    float gradient = 0;
    if (lane < R) {
      float sum = 0;
      for (int w = 0; w < warps; ++w) sum += products[turn][first_warp + w][lane];
      gradient = of_row.finish(pass, state, mine, sum, thread / 32 == first_warp && first + lane * groups < end);
    }
#pragma unroll
    for (int r = 0; r < R; ++r) {
      const float of_logit = __shfl_sync(0xffffffffu, gradient, r);
      if (first + r * groups >= end) continue;
#pragma unroll
      for (int k = 0; k < K; ++k) packs[k].add_row(first + r * groups, in[k][r], of_logit);
    }
  }
  add_up_losses(pass, state, of_row);
#pragma unroll
  for (int k = 0; k < K; ++k) write_sums<V>(pass, k * lanes, packs[k].sums);
}

template <class T>
LogitColumn<T> column_of(const Tensor& t) {
  return {t.data<T>(), t.row_stride()};
}

/// Packs of T that a row has in all inputs.
template <class T>
int64_t packs_of_row(const LogitLayer& layer) {
  int64_t packs = 0;
  for (const ConcatLinearInput& input : layer.inputs)
    packs += cuda::chunks_per_row(input.x.dim(1), cuda::kConcatPack<T>);
  return packs;
}

/// Whether one kernel does it. The same for both operators, since their arguments are.
bool fits_one_kernel(const LogitLayer& layer, const std::optional<LogitSum>& sum) {
  bool fits = !sum || sum->terms.size() <= kMostTerms;
  dispatch_float(layer.y.dtype(), [&]<class T>() {
    constexpr int V = cuda::kConcatPack<T>;
    fits = fits && packs_of_row<T>(layer) <= kMostPacks * kLogitThreads;
    for (const ConcatLinearInput& input : layer.inputs)
      fits = fits && cuda::takes_packs<V>(input.x.view<const T, 2>()) &&
             (!input.d_x || cuda::takes_packs<V>(input.d_x->view<T, 2>()));
  });
  return fits && reinterpret_cast<uintptr_t>(layer.scratch.bytes()) % sizeof(double) == 0;
}

template <class T>
void set_inputs(const LogitLayer& layer, LogitPass<T>& pass) {
  constexpr int V = cuda::kConcatPack<T>;
  for (const ConcatLinearInput& input : layer.inputs) {
    const cuda::Strided<T> w{layer.w.data<const T>() + pass.width * layer.w.row_stride(), layer.w.row_stride()};
    pass.inputs[pass.count] = {input.x.view<const T, 2>(),
                               input.d_x ? input.d_x->view<T, 2>() : View<T, 2>{nullptr, {0, 0}, 0},
                               w,
                               pass.width,
                               input.below_relu ? input.below_relu->factor : 1,
                               w.template takes_packs<V>(),
                               input.below_relu.has_value()};
    pass.first_pack[pass.count + 1] =
        pass.first_pack[pass.count] + static_cast<int>(cuda::chunks_per_row(input.x.dim(1), V));
    ++pass.count;
    pass.width += input.x.dim(1);
  }
  pass.lanes = std::clamp(static_cast<int>(std::bit_ceil(static_cast<uint32_t>(pass.first_pack[pass.count]))), 32,
                          kLogitThreads);
  pass.part_width = concat_linear_part_width(pass.width);
}

template <class T>
void set_terms(const LogitLayer& layer, const LogitSum& sum, const Tensor& d_logits, LogitPass<T>& pass) {
  for (const Tensor& term : sum.terms) {
    if (term.bytes() == layer.y.bytes()) pass.of_layer = pass.term_count;
    pass.terms[pass.term_count++] = column_of<const T>(term);
  }
  for (const std::optional<Tensor>& d_term : sum.d_terms)
    if (d_term && d_term->bytes() != d_logits.bytes()) pass.d_terms[pass.d_term_count++] = column_of<T>(*d_term);
}

}  // namespace

void cuda::logit_loss(Context& ctx, const LogitLayer& layer, const std::optional<LogitSum>& sum,
                      const LogitTarget& target) {
  if (!fits_one_kernel(layer, sum)) return one_by_one::logit_loss(ctx, layer, sum, target);
  const int64_t rows = layer.y.rows(), parts = logit_loss_parts(rows);
  for (const ConcatLinearInput& input : layer.inputs)
    count_flops(ctx, (input.d_x ? 6.0 : 4.0) * static_cast<double>(rows) * static_cast<double>(input.x.dim(1)));
  dispatch_float(layer.y.dtype(), [&]<class T>() {
    LogitPass<T> pass{};
    set_inputs(layer, pass);
    if (sum) set_terms(layer, *sum, target.gradient.d_logits, pass);
    pass.bias = layer.bias ? layer.bias->data<const T>() : nullptr;
    pass.y = column_of<T>(layer.y);
    pass.logits = column_of<T>(logits_of(layer, sum));
    pass.d_logits = column_of<T>(target.gradient.d_logits);
    pass.label = column_of<const float>(target.label);
    pass.probability = column_of<float>(target.probability);
    pass.factor = factor_of<float>(target.weights);
    pass.weight = target.gradient.weight;
    pass.rows = rows;
    pass.rows_per_part = (rows + parts - 1) / parts;
    pass.losses = reinterpret_cast<double*>(layer.scratch.bytes());
    pass.sums = reinterpret_cast<float*>(pass.losses + parts);
    pass.loss = target.loss.data<float>();
    pass.blocks_done = target.blocks_done.data<int32_t>();
    launch(ctx, "logit_loss", early({parts, kLogitThreads, 0}),
           pass.first_pack[pass.count] <= kLogitThreads ? logit_loss_kernel<1, T> : logit_loss_kernel<kMostPacks, T>,
           ctx.state(), pass);
  });
}

void cuda::logit_loss_backward(Context& ctx, const LogitLayer& layer, const std::optional<LogitSum>& sum,
                               const LogitTarget& target) {
  if (!fits_one_kernel(layer, sum)) return one_by_one::logit_loss_backward(ctx, layer, sum, target);
  const int64_t parts = logit_loss_parts(layer.y.rows());
  add_concat_totals(ctx, "logit_loss totals", layer.scratch.data<float>() + parts * (sizeof(double) / sizeof(float)),
                    parts, layer.inputs, layer.d_w, layer.d_bias);
}

}  // namespace hctr::ops
