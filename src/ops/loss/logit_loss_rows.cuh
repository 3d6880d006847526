// Arguments of the kernel in ops/loss/logit_loss_kernel.cuh, and the rows and columns of one thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/common/element_loops.cuh"
#include "ops/gemm/concat_linear.cuh"
#include "ops/gemm/one_column.cuh"
#include "ops/loss/cross_entropy_rules.h"
#include "ops/loss/logit_loss_parts.h"

namespace hctr::ops {

inline constexpr int kLogitThreads = 256, kLogitWarps = kLogitThreads / 32;
// A row is processed by a group of one or more whole warps, so there are at most as many groups as warps.
inline constexpr int kMostLogitGroups = kLogitWarps;
inline constexpr int kMostPacks = 2;  // maximum packs of a row that one thread processes
inline constexpr int kRowsOfTurn = 4, kRowsOfOneTurn = 2;
inline constexpr size_t kMostTerms = 8;

/// A tensor with one column.
template <class T>
struct LogitColumn {
  T* data = nullptr;
  int64_t step = 0;
  __device__ T& operator[](int64_t row) const { return data[row * step]; }
};

template <class T>
struct LogitInput {
  View<const T, 2> x;
  View<T, 2> d_x;  // null: not requested
  cuda::Strided<T> w;
  int64_t first_column;
  float factor;  // scale of the dropout after the ReLU; 1: no dropout
  bool packs_of_w, relu;
};

/// The kernel arguments.
template <class T>
struct LogitPass {
  LogitInput<T> inputs[kMostConcatParts];
  int first_pack[kMostConcatParts + 1];  // for each input, the index of its first pack within a row
  int count, lane_bits;                  // count: number of inputs; lane_bits: log2 of the threads per group
  const T* bias;
  LogitColumn<T> y, logits, d_logits;
  LogitColumn<const T> terms[kMostTerms];  // terms[of_layer] is y
  // gradients of the terms; omits terms whose gradient is in the memory of d_logits
  LogitColumn<T> d_terms[kMostTerms];
  int term_count, of_layer, d_term_count;
  LogitColumn<const float> label;
  LogitColumn<float> probability;
  SampleFactor<float> factor;
  float weight;
  int64_t rows, rows_per_part, width, part_width;
  double* losses;  // [parts] loss of each part
  float *sums, *loss;
  uint32_t* blocks_done;
};

/// The rows and columns of a thread in its block.
struct LogitPlace {
  int thread, lane, lanes, groups, group;  // a group of `lanes` threads processes one row
  int64_t begin, end;                      // rows of the block
  int64_t last;                            // last row that may be loaded; valid even if the block has no rows

  template <class T>
  __device__ explicit LogitPlace(const LogitPass<T>& pass)
      : thread(static_cast<int>(threadIdx.x)),
        lane(thread % 32),
        lanes(1 << pass.lane_bits),
        groups(kLogitThreads >> pass.lane_bits),
        group(thread >> pass.lane_bits),
        begin(min(blockIdx.x * pass.rows_per_part, pass.rows)),
        end(min(begin + pass.rows_per_part, pass.rows)),
        last(end - 1) {}

  __device__ int lane_of_group() const { return thread & (lanes - 1); }
  __device__ bool is_first_warp() const { return lane_of_group() < 32; }
};

/// A thread's columns in one pack, with the weights and the sums of these columns.
template <int V, class T>
struct LogitPack {
  using Pack = cuda::Pack<T, V>;
  const T *x = nullptr, *weights = nullptr;
  T* d_x = nullptr;
  int64_t x_stride = 0, d_x_stride = 0, w_step = 0;
  int left = 0;  // number of columns in the pack; 0 past the last pack
  bool packs_of_w = false, relu = false;
  float factor = 1;
  float w[V] = {}, sums[2 * V] = {};  // sums: V sums for d_w, then V for the upstream bias gradient

  /// Computes addresses from kernel arguments only.
  __device__ void place(const LogitPass<T>& pass, int number) {
    const int last = pass.first_pack[pass.count] - 1, own = min(number, last);
    int p = 0;
    while (own >= pass.first_pack[p + 1]) ++p;
    const LogitInput<T>& input = pass.inputs[p];
    const int64_t column = int64_t{own - pass.first_pack[p]} * V;
    left = number > last ? 0 : static_cast<int>(min(input.x.size(1) - column, int64_t{V}));
    x = input.x.data + column;
    x_stride = input.x.row_stride;
    d_x = input.d_x.data && left > 0 ? input.d_x.data + column : nullptr;
    d_x_stride = input.d_x.row_stride;
    weights = input.w.data + column * input.w.step;
    w_step = input.w.step;
    packs_of_w = input.packs_of_w;
    factor = input.factor;
    relu = input.relu;
  }
  /// May also load padding after the last column, within the same 16 bytes.
  __device__ Pack load_weights() const {
    if (packs_of_w) return cuda::load_pack<V>(weights);
    Pack pack;
#pragma unroll
    for (int v = 0; v < V; ++v) pack.at[v] = v < left ? weights[v * w_step] : static_cast<T>(0.0f);
    return pack;
  }
  __device__ void set_weights(const Pack& pack) {
#pragma unroll
    for (int v = 0; v < V; ++v) w[v] = v < left ? static_cast<float>(pack.at[v]) : 0.0f;
  }
  /// Computes the addresses of R rows: `first`, `first` + `step` and so on. Row `last` replaces rows past `last`.
  template <int R>
  __device__ void find(int64_t first, int64_t step, int64_t last, const T* (&at)[R]) const {
#pragma unroll
    for (int r = 0; r < R; ++r) at[r] = x + min(first + r * step, last) * x_stride;
  }
  /// Zeroes elements past the last column.
  template <int R>
  __device__ void cut(Pack (&in)[R]) const {
    if (left == V) return;
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
      for (int v = 0; v < V; ++v)
        if (v >= left) in[r].at[v] = static_cast<T>(0.0f);
  }
  __device__ float product(const Pack& in) const {
    float sum = 0;
#pragma unroll
    for (int v = 0; v < V; ++v) sum += static_cast<float>(in.at[v]) * w[v];
    return sum;
  }
  __device__ void add_row(int64_t row, const Pack& in, float gradient) {
    float out[V];
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const auto value = static_cast<float>(in.at[v]);
      sums[v] += value * gradient;
      // sums the stored, rounded values for the bias gradient
      out[v] = static_cast<float>(static_cast<T>(!relu || value > 0 ? factor * (gradient * w[v]) : 0.0f));
      sums[V + v] += out[v];
    }
    if (d_x == nullptr) return;
    T* to = d_x + row * d_x_stride;
    if (left == V) {
      cuda::store_as_one(to, out);
    } else {
#pragma unroll
      for (int v = 0; v < V; ++v)
        if (v < left) to[v] = static_cast<T>(out[v]);
    }
  }
};

/// Arguments of LogitRow::finish() that are equal for all rows of a step.
template <class T>
struct LogitStep {
  int32_t valid_samples, global_samples;
  float loss_scale, log_negative_share;
  T bias;

  __device__ void load(const StepState* at, const T* bias_at) {
    valid_samples = at->valid_samples;
    global_samples = at->global_samples;
    loss_scale = at->loss_scale;
    log_negative_share = at->log_negative_share;
    bias = bias_at ? *bias_at : static_cast<T>(0.0f);
  }
};

/// A lane's state: the loaded inputs of a row, and the sums over its rows.
template <class T>
struct LogitRow {
  float label, weight = 1;  // weight: the sample's weight, not multiplied by `positive`
  T terms[kMostTerms];
  double loss = 0;
  float d_sum = 0;

  __device__ void load(const LogitPass<T>& pass, int64_t row) {
    label = pass.label[row];
    if (pass.factor.weights) weight = pass.factor.weights[row * pass.factor.stride];
    if (pass.term_count == 0) return;
#pragma unroll
    for (int i = 0; i < static_cast<int>(kMostTerms); ++i)
      if (i < pass.term_count && i != pass.of_layer) terms[i] = pass.terms[i][row];
  }
  /// Adds y and the other terms, in order.
  __device__ T sum_of_terms(const LogitPass<T>& pass, T y) const {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < static_cast<int>(kMostTerms); ++i) {
      if (i >= pass.term_count) continue;
      const auto term = static_cast<float>(i == pass.of_layer ? y : terms[i]);
      sum = i == 0 ? term : sum + term;
    }
    return static_cast<T>(sum);
  }
  /// Completes a row: returns the gradient of its logit from the layer's result `product`. `factor`: common factor of
  /// all gradients. `writes`: whether to store the row's results.
  __device__ float finish(const LogitPass<T>& pass, const LogitStep<T>& step, float factor, int64_t row, float product,
                          bool writes) {
    if (pass.bias) product += static_cast<float>(step.bias);
    const T y = static_cast<T>(product), logit = pass.term_count > 0 ? sum_of_terms(pass, y) : y;
    const SampleFactor<float> of_class{nullptr, 0, pass.factor.positive};
    const CrossEntropyTerm<float> term{static_cast<float>(logit), label, of_class(row, label) * weight};
    const CrossEntropyTerm<float> sampled = term.sampled(step.log_negative_share);
    const bool counts = row < step.valid_samples;
    const T gradient = static_cast<T>(counts ? sampled.gradient(factor) : 0.0f);
    if (writes) {
      if (counts) loss += static_cast<double>(sampled.loss());
      d_sum += static_cast<float>(gradient);
      pass.y[row] = y;
      if (pass.term_count > 0) pass.logits[row] = logit;
      pass.probability[row] = term.probability();
      pass.d_logits[row] = gradient;
#pragma unroll 1
      for (int i = 0; i < pass.d_term_count; ++i) pass.d_terms[i][row] = gradient;
    }
    return static_cast<float>(gradient);
  }
};

}  // namespace hctr::ops
