// A block has a part of the rows, whole. Its threads keep the packs of their columns of a few rows in registers: first
// they multiply them by the weights, then the row's logit and its gradient are known, and the same registers give the
// gradient of x and what the weights want of these rows. The last block to be done adds up the loss.
//
// Small batches take as long as what has to be waited for one after the other. So addresses are known before the kernel
// in front has ended, all loads are under way before any is used, and a block meets at one barrier, behind its rows;
// the loss of all blocks is left to one warp.
#include "ops/logit_loss.h"

#include <algorithm>
#include <bit>
#include <cuda/atomic>

#include "device/profiler.h"
#include "ops/concat_linear.cuh"
#include "ops/cross_entropy_rules.h"
#include "ops/logit_loss_parts.h"
#include "ops/one_column.cuh"
#include "ops/reduce.cuh"

namespace hctr::ops {
namespace {

constexpr int kLogitThreads = 256, kLogitWarps = kLogitThreads / 32;
constexpr int kMostLogitGroups = kLogitWarps;  // threads that have a row together are whole warps
constexpr int kMostPacks = 2;                  // of a row that a thread has
constexpr int kRowsOfTurn = 4, kRowsOfOneTurn = 2;
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
  int count, lane_bits;                  // inputs; the log of the number of threads that have a row together
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
  uint32_t* blocks_done;
};

/// Which rows and columns of its block a thread has.
struct LogitPlace {
  int thread, lane, lanes, groups, group;  // lanes: threads that have a row together, a group
  int64_t begin, end;                      // rows of the block
  int64_t last;                            // to load: a row of the matrix even where the block has none

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

/// What a thread has of one pack of columns.
template <int V, class T>
struct LogitPack {
  using Pack = cuda::Pack<T, V>;
  const T *x = nullptr, *weights = nullptr;
  T* d_x = nullptr;
  int64_t x_stride = 0, d_x_stride = 0, w_step = 0;
  int left = 0;  // columns that it has: 0 behind the last pack
  bool packs_of_w = false, relu = false;
  float factor = 1;
  float w[V] = {}, sums[2 * V] = {};  // sums: for d_w, for the bias below

  /// Reads arguments alone.
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
  /// Behind the last column too: those are of the same 16 bytes.
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
  /// Where it has the rows first, first + step, ..., of which those past `last` repeat it.
  template <int R>
  __device__ void find(int64_t first, int64_t step, int64_t last, const T* (&at)[R]) const {
#pragma unroll
    for (int r = 0; r < R; ++r) at[r] = x + min(first + r * step, last) * x_stride;
  }
  /// Zeros behind the last column.
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
      // What the bias wants is the sum of what is stored.
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

/// What finish() needs of a step, the same for all rows.
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

/// What a lane knows of a row before its logit, and what it adds up over rows.
template <class T>
struct LogitRow {
  float label, weight = 1;  // weight: of the sample alone
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
  /// y and its terms, in their order.
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
  /// The gradient of the row's logit, given the product of the layer. `factor`: of all gradients. `writes`: what the
  /// row has is stored.
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

/// The sum over the warp of what its lanes have for row r, for lane r.
template <int R>
__device__ float own_sum(float (&sums)[R], int lane) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
#pragma unroll
    for (int r = 0; r < R; ++r) sums[r] += __shfl_xor_sync(0xffffffffu, sums[r], distance);
  float own = 0;
#pragma unroll
  for (int r = 0; r < R; ++r)
    if (lane == r) own = sums[r];
  return own;
}

template <int N, class A>
__device__ A tree_sum(const A (&of)[N]) {
  if constexpr (N == 1) {
    return of[0];
  } else {
    A halves[N / 2];
#pragma unroll
    for (int i = 0; i < N / 2; ++i) halves[i] = of[i] + of[i + N / 2];
    return tree_sum(halves);
  }
}

/// What the threads of a block tell each other.
template <int K, int V, int R>
struct LogitShared {
  static constexpr int kStride = kLogitThreads + 32 / V;  // so that a warp reads adjacent columns from all banks
  float products[2][kLogitWarps][R];
  double losses[kMostLogitGroups][R];
  float d_sums[kMostLogitGroups][R];
  float sums[K][2 * V][kStride];

  /// The sum over the warps of a group of what its lanes below R have, for each of these lanes. One barrier is enough,
  /// since the next turn writes to other places.
  __device__ float over_warps(const LogitPlace& at, int turn, float own) {
    if (at.lane < R) products[turn][at.thread / 32][at.lane] = own;
    __syncthreads();
    float sum = 0;
    const int warps = at.lanes / 32, first = at.group * warps;
#pragma unroll
    for (int w = 0; w < kLogitWarps; ++w)
      if (w < warps && at.lane < R) sum += products[turn][first + w][at.lane];
    return sum;
  }
  /// The sum over the groups of sum number i of pack k of a lane of theirs.
  __device__ float over_groups(int k, int i, int lane, int lanes) const {
    float of_group[kMostLogitGroups];
#pragma unroll
    for (int g = 0; g < kMostLogitGroups; ++g)
      of_group[g] = g * lanes < kLogitThreads ? sums[k][i][lane + g * lanes] : 0.0f;
    return tree_sum(of_group);
  }
};

/// For memory that other blocks read.
__device__ inline void logit_fence() {
  ::cuda::atomic_thread_fence(::cuda::memory_order_acq_rel, ::cuda::thread_scope_device);
}

/// The loss and the sum of the gradients of this block's rows. By one thread, which gets to know whether it is that of
/// the last block to write them.
template <class Shared, class T>
__device__ bool write_loss_of_block(const LogitPass<T>& pass, const LogitPlace& at, const Shared& shared) {
  constexpr int R = sizeof(shared.losses[0]) / sizeof(double);
  const auto used = static_cast<int>(min(int64_t{at.groups}, at.end - at.begin));
  double loss = 0;
  float d_sum = 0;
#pragma unroll
  for (int g = 0; g < kMostLogitGroups; ++g) {
    if (g >= used) continue;
#pragma unroll
    for (int r = 0; r < R; ++r) {
      loss += shared.losses[g][r];
      d_sum += shared.d_sums[g][r];
    }
  }
  pass.losses[blockIdx.x] = loss;
  logit_fence();
  const uint32_t last = gridDim.x - 1, done = atomicInc(pass.blocks_done, last);  // the last one sets it back to 0
  pass.sums[blockIdx.x * pass.part_width + 2 * pass.width] = d_sum;
  return done == last;
}

/// The loss of all blocks, whose parts are complete. By one warp: a tree.
template <class T>
__device__ void add_up_losses(const LogitPass<T>& pass, int lane, int32_t global_samples) {
  constexpr int kOfLane = kMostLogitLossParts / 32;
  const auto parts = static_cast<int>(gridDim.x);
  double sums[kOfLane];
#pragma unroll
  for (int j = 0; j < kOfLane; ++j) sums[j] = lane + 32 * j < parts ? __ldcg(pass.losses + lane + 32 * j) : 0;
  const auto inverse = inverse_count<double>(global_samples);  // meanwhile
  const double sum = cuda::warp_sum(tree_sum(sums));
  if (lane != 0) return;
  *pass.loss = static_cast<float>(sum * inverse);
}

/// The sums of this block's rows, for the packs number k of all threads.
template <int V, class Shared, class T>
__device__ void write_sums(const LogitPass<T>& pass, const LogitPlace& at, const Shared& shared, int k) {
  float* const sums = pass.sums + blockIdx.x * pass.part_width;
  const int first = k * at.lanes;
#pragma unroll 1
  for (int p = 0; p < pass.count; ++p) {
    const LogitInput<T>& input = pass.inputs[p];
    const int before = first - pass.first_pack[p], begin = max(before * V, 0),
              end = min((before + at.lanes) * V, static_cast<int>(input.x.size(1)));
#pragma unroll 1
    for (int j = begin + at.thread; j < end; j += kLogitThreads) {
      const int from = j / V - before, v = j % V;
      sums[input.first_column + j] = shared.over_groups(k, v, from, at.lanes);
      if (input.relu) sums[pass.width + input.first_column + j] = shared.over_groups(k, V + v, from, at.lanes);
    }
  }
}

/// K: packs of a row that a thread has. kOneTurn: it has two rows at most; otherwise four at a time.
template <int K, bool kOneTurn, class T>
__global__ void __launch_bounds__(kLogitThreads, 2)
    logit_loss_kernel(const StepState* state, const __grid_constant__ LogitPass<T> pass) {
  constexpr int V = cuda::kConcatPack<T>, R = kOneTurn ? kRowsOfOneTurn : kRowsOfTurn;
  using Pack = LogitPack<V, T>;
  __shared__ LogitShared<K, V, R> shared;
  const LogitPlace at(pass);
  Pack packs[K];
  const T* rows[K][R];
  const auto find = [&](int64_t first) {
#pragma unroll
    for (int k = 0; k < K; ++k) packs[k].find(first, at.groups, at.last, rows[k]);
  };
#pragma unroll
  for (int k = 0; k < K; ++k) packs[k].place(pass, k * at.lanes + at.lane_of_group());
  find(at.begin + at.group);
  cuda::start_early();

  LogitStep<T> step;
  step.load(state, pass.bias);
  typename Pack::Pack weights[K], in[K][R];
#pragma unroll
  for (int k = 0; k < K; ++k) weights[k] = packs[k].load_weights();
  LogitRow<T> of_row;
  const auto row_of_lane = [&](int64_t first) { return min(first + at.lane * at.groups, at.last); };
  const auto load = [&](int64_t first) {
#pragma unroll
    for (int k = 0; k < K; ++k)
#pragma unroll
      for (int r = 0; r < R; ++r) in[k][r] = cuda::load_pack<V>(rows[k][r]);  // behind the last column too, as weights
    if (at.lane < R) of_row.load(pass, row_of_lane(first));
  };
  load(at.begin + at.group);
#pragma unroll
  for (int k = 0; k < K; ++k) packs[k].set_weights(weights[k]);
  const float factor = pass.weight * step.loss_scale * inverse_count<float>(step.global_samples);

  int turn = 0;
  for (int64_t block_first = at.begin; block_first < at.end; turn ^= 1) {
    const int64_t first = block_first + at.group;
#pragma unroll
    for (int k = 0; k < K; ++k) packs[k].cut(in[k]);
    float products[R];
#pragma unroll
    for (int r = 0; r < R; ++r) {
      products[r] = 0;
#pragma unroll
      for (int k = 0; k < K; ++k) products[r] += packs[k].product(in[k][r]);
    }
    float own = own_sum(products, at.lane);
    if (at.lanes > 32) own = shared.over_warps(at, turn, own);
    float gradient = 0;
    if (at.lane < R)
      gradient = of_row.finish(pass, step, factor, row_of_lane(first), own,
                               at.is_first_warp() && first + at.lane * at.groups < at.end);
#pragma unroll
    for (int r = 0; r < R; ++r) {
      const float of_logit = __shfl_sync(0xffffffffu, gradient, r);
      if (first + r * at.groups >= at.end) continue;
#pragma unroll
      for (int k = 0; k < K; ++k) packs[k].add_row(first + r * at.groups, in[k][r], of_logit);
    }
    if constexpr (kOneTurn) break;
    block_first += at.groups * R;
    if (block_first >= at.end) break;
    find(block_first + at.group);
    load(block_first + at.group);
  }

  if (at.lane < R && at.is_first_warp()) {
    shared.losses[at.group][at.lane] = of_row.loss;
    shared.d_sums[at.group][at.lane] = of_row.d_sum;
  }
#pragma unroll
  for (int k = 0; k < K; ++k)
#pragma unroll
    for (int i = 0; i < 2 * V; ++i) shared.sums[k][i][at.thread] = packs[k].sums[i];
  __syncthreads();
  bool is_last = false;
  if (at.thread == 0) is_last = write_loss_of_block(pass, at, shared);
#pragma unroll
  for (int k = 0; k < K; ++k) write_sums<V>(pass, at, shared, k);
  if (at.thread >= 32 || !__shfl_sync(0xffffffffu, is_last, 0)) return;
  logit_fence();
  add_up_losses(pass, at.lane, step.global_samples);
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
  bool fits = layer.y.rows() > 0 && (!sum || sum->terms.size() <= kMostTerms);
  dispatch_float(layer.y.dtype(), [&]<class T>() {
    constexpr int V = cuda::kConcatPack<T>;
    const int64_t packs = packs_of_row<T>(layer);
    fits = fits && packs > 0 && packs <= kMostPacks * kLogitThreads;
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
  const auto lanes = std::bit_ceil(static_cast<uint32_t>(pass.first_pack[pass.count]));
  pass.lane_bits = std::countr_zero(std::clamp<uint32_t>(lanes, 32, kLogitThreads));
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

template <class T>
auto kernel_of(const LogitPass<T>& pass) {
  if (pass.first_pack[pass.count] > kLogitThreads) return logit_loss_kernel<kMostPacks, false, T>;
  const int groups = kLogitThreads >> pass.lane_bits;
  return pass.rows_per_part <= kRowsOfOneTurn * groups ? logit_loss_kernel<1, true, T> : logit_loss_kernel<1, false, T>;
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
    pass.blocks_done = reinterpret_cast<uint32_t*>(target.blocks_done.data<int32_t>());
    launch(ctx, "logit_loss", early({parts, kLogitThreads, 0}), kernel_of(pass), ctx.state(), pass);
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
