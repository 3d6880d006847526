#include "ops/dense/cross_gate.h"

#include <utility>

#include "ops/common/element_loops.cuh"
#include "ops/dense/multi_cross.h"
#include "ops/gemm/bias_gradient.cuh"

namespace hctr::ops {
namespace {

/// Processes rows from last to first. The last rows of t are still in L2 from the preceding GEMM. The first rows of y
/// are then in L2 for the next GEMM.
template <int V, class T>
__global__ void cross_gate_kernel(View<const T, 2> x, View<const T, 2> t, View<const T, 2> skip, View<T, 2> y) {
  const int64_t rows = y.size(0), columns = y.size(1), per_row = cuda::chunks_per_row(columns, V);
  for (int64_t i = cuda::thread_index(); i < rows * per_row; i += cuda::thread_count()) {
    const cuda::Chunk s = cuda::chunk_at(rows * per_row - 1 - i, rows, per_row, V);
    const int64_t left = columns - s.column;
    float a[V] = {}, b[V] = {}, out[V] = {};
    cuda::read<V>(x.row(s.row) + s.column, left, a);
    cuda::read<V>(t.row(s.row) + s.column, left, b);
    cuda::read<V>(skip.row(s.row) + s.column, left, out);
#pragma unroll
    for (int j = 0; j < V; ++j) out[j] += a[j] * b[j];
    cuda::write<V>(y.row(s.row) + s.column, left, out);
  }
}

struct CrossRule {
  static constexpr bool kFromEnd = true;
  __device__ float operator()(float x, float d_y) const { return x * d_y; }
};

/// Computes the first layer's gate gradient, and the gradient of x summed over all layers.
template <class T>
struct FirstCrossRule : CrossRule {
  static constexpr int kAtOnce = 2;  // number of layers whose tensors a thread loads before it uses any of them
  const T *t[kMostCrossLayers], *d_y[kMostCrossLayers];
  int64_t t_stride[kMostCrossLayers], d_y_stride[kMostCrossLayers];
  int layers;
  View<T, 2> d_x;

  template <int V>
  __device__ void beside(int64_t row, int64_t column, int64_t left, const cuda::Pack<T, V>& d_first) const {
    float sum[V] = {};
    add_all<V>(row, column, left, d_first, sum);
    cuda::write<V>(d_x.row(row) + column, left, sum);
  }

  /// Adds the contributions of all layers to the gradient of x, for up to V elements of a row.
  template <int V>
  __device__ void add_all(int64_t row, int64_t column, int64_t left, const cuda::Pack<T, V>& d_first,
                          float (&sum)[V]) const {
    const cuda::Pack<T, V> t_first = cuda::load_some<V>(t[0] + row * t_stride[0] + column, left);
    for (int last = layers - 1; last > 0; last -= kAtOnce) {
      cuda::Pack<T, V> factor[kAtOnce], gradient[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        if (const int l = last - i; l > 0) {
          factor[i] = cuda::load_some<V>(t[l] + row * t_stride[l] + column, left);
          gradient[i] = cuda::load_some<V>(d_y[l] + row * d_y_stride[l] + column, left);
        }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        if (last - i > 0)
#pragma unroll
          for (int v = 0; v < V; ++v)
            sum[v] += static_cast<float>(gradient[i].at[v]) * static_cast<float>(factor[i].at[v]);
    }
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const auto d = static_cast<float>(d_first.at[v]);
      sum[v] += d * static_cast<float>(t_first.at[v]);
      sum[v] += d;
    }
  }
};

/// Processes rows from last to first, like cross_gate_kernel.
template <int V, class T>
__global__ void cross_gates_gradient_kernel(const __grid_constant__ FirstCrossRule<T> rule) {
  const int64_t rows = rule.d_x.size(0), columns = rule.d_x.size(1), per_row = cuda::chunks_per_row(columns, V);
  for (int64_t i = cuda::thread_index(); i < rows * per_row; i += cuda::thread_count()) {
    const cuda::Chunk s = cuda::chunk_at(rows * per_row - 1 - i, rows, per_row, V);
    const int64_t left = columns - s.column;
    const T* const d_first = rule.d_y[0] + s.row * rule.d_y_stride[0] + s.column;
    float sum[V] = {};
    // One branch for all loads: a branch around each load would serialize them.
    if (left >= V)
      rule.template add_all<V>(s.row, s.column, V, cuda::load_pack<V>(d_first), sum);
    else
      rule.template add_all<V>(s.row, s.column, left, cuda::load_part_of_pack<V>(d_first, left), sum);
    cuda::write<V>(rule.d_x.row(s.row) + s.column, left, sum);
  }
}

/// Returns the rule, and whether all its tensors are aligned for 16-byte packs.
template <class T>
std::pair<FirstCrossRule<T>, bool> first_cross_rule(const CrossGates& gates, const Tensor& d_x) {
  FirstCrossRule<T> rule{};
  rule.d_x = d_x.view<T, 2>();
  bool packs = cuda::takes_packs<16 / sizeof(T)>(rule.d_x);
  const auto take = [&](const Tensor& tensor, const T*& data, int64_t& stride) {
    const View<const T, 2> view = tensor.view<const T, 2>();
    packs = packs && cuda::takes_packs<16 / sizeof(T)>(view);
    data = view.data;
    stride = view.row_stride;
  };
  for (; rule.layers < static_cast<int>(gates.t.size()); ++rule.layers) {
    const auto l = static_cast<size_t>(rule.layers);
    take(gates.t[l], rule.t[l], rule.t_stride[l]);
    take(gates.d_y[l], rule.d_y[l], rule.d_y_stride[l]);
  }
  return {rule, packs};
}

cuda::Grid elements_of(const Tensor& t, int V) {
  return cuda::grid_for(t.rows() * cuda::chunks_per_row(t.row_elements(), V));
}

}  // namespace

void cuda::cross_gate(Context& ctx, Tensor x, Tensor t, Tensor skip, Tensor y) {
  dispatch_float(y.dtype(), [&]<class T>() {
    constexpr int V = 16 / sizeof(T);
    const View<const T, 2> a = x.matrix<const T>(), b = t.matrix<const T>(), c = skip.matrix<const T>();
    const View<T, 2> to = y.matrix<T>();
    const bool packs = takes_packs<V>(a) && takes_packs<V>(b) && takes_packs<V>(c) && takes_packs<V>(to);
    launch(ctx, "cross_gate", elements_of(y, packs ? V : 1), packs ? cross_gate_kernel<V, T> : cross_gate_kernel<1, T>,
           a, b, c, to);
  });
}

void cuda::cross_gate_backward(Context& ctx, Tensor x, Tensor d_y, Tensor d_t, Tensor d_bias, Tensor scratch) {
  dispatch_float(d_t.dtype(), [&]<class T>() {
    launch_bias_gradient<T>(ctx, "cross_gate_backward", CrossRule{}, true, x, d_y, d_t, d_bias, scratch);
  });
}

void cuda::first_cross_gate_backward(Context& ctx, Tensor x, CrossGates gates, Tensor d_t, Tensor d_bias,
                                     Tensor scratch, Tensor d_x) {
  dispatch_float(d_t.dtype(), [&]<class T>() {
    const auto [rule, packs] = first_cross_rule<T>(gates, d_x);
    launch_bias_gradient<T>(ctx, "first_cross_gate_backward", rule, packs, x, gates.d_y[0], d_t, d_bias, scratch);
  });
}

void cuda::cross_gates_gradient(Context& ctx, CrossGates gates, Tensor d_x) {
  dispatch_float(d_x.dtype(), [&]<class T>() {
    constexpr int V = 16 / sizeof(T);
    const auto [rule, packs] = first_cross_rule<T>(gates, d_x);
    launch(ctx, "cross_gates_gradient", elements_of(d_x, packs ? V : 1),
           packs ? cross_gates_gradient_kernel<V, T> : cross_gates_gradient_kernel<1, T>, rule);
  });
}

}  // namespace hctr::ops
