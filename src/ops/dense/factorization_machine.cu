// Kernels of the factorization machine. A block stages a few samples in shared memory. Global memory is accessed with
// wide loads and stores, and only shared memory is accessed element by element. Two files have faster kernels for
// vectors of at most 32 elements: factorization_machine_words.cuh for pairs of two-byte elements,
// factorization_machine_lanes.cuh for the rest.
#include "ops/dense/factorization_machine.h"

#include "ops/dense/factorization_machine_lanes.cuh"
#include "ops/dense/factorization_machine_words.cuh"
#include "ops/gemm/staged_rows.cuh"

namespace hctr::ops {
namespace {

/// Samples staged per block. The slots of this many samples fill a multiple of 16 bytes, for any vector length.
template <class T>
constexpr int kFmSamples = 16 / sizeof(T);
// kFmLanes: threads that compute one sum. kFmThreads: threads of a block.
constexpr int kFmLanes = 4, kFmThreads = 256;

/// Calls f(sample, k, lane, valid) for each pair (sample, k), with kFmLanes threads per pair. There are `pairs` =
/// samples * per_sample pairs. All threads of a warp make the same number of calls.
template <class F>
__device__ void for_sums(int pairs, int per_sample, const F& f) {
  constexpr int kGroups = kFmThreads / kFmLanes;
  const int lane = static_cast<int>(threadIdx.x) % kFmLanes;
  for (int begin = 0; begin < pairs; begin += kGroups) {
    const int pair = begin + static_cast<int>(threadIdx.x) / kFmLanes;
    const int at = min(pair, pairs - 1);
    f(at / per_sample, at % per_sample, lane, pair < pairs);
  }
}

__device__ float lanes_sum(float value) {
#pragma unroll
  for (int half = kFmLanes / 2; half > 0; half /= 2) value += __shfl_xor_sync(0xffffffffu, value, half);
  return value;
}

/// Writes `rows` rows of `memory`. elements(row, column) returns a generator: each call returns the next element.
template <class T, class F>
__device__ void write_rows(View<T, 2> memory, int64_t first, int rows, bool packs, const F& elements) {
  constexpr int V = 16 / sizeof(T);
  const int columns = static_cast<int>(memory.size(1)), per_row = (columns + V - 1) / V;
  for (int i = static_cast<int>(threadIdx.x); i < rows * per_row; i += static_cast<int>(blockDim.x)) {
    const int row = i / per_row, begin = i % per_row * V;
    T* to = memory.row(first + row) + begin;
    auto next = elements(row, begin);
    if (packs && begin + V <= columns) {
      alignas(16) T pack[V];
#pragma unroll
      for (int v = 0; v < V; ++v) pack[v] = next();
      *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(pack);
    } else {
      for (int v = 0; v < V && begin + v < columns; ++v) to[v] = next();
    }
  }
}

/// Whether the rows of each tensor are aligned to 16 bytes. `x` also requires that the rows are contiguous.
struct FmPacks {
  bool x, vectors, y, d_y;
};

/// The samples of a block in shared memory.
template <class T>
struct FmSamples {
  T *slots, *others;  // [samples, elements]
  float* sums;        // [sample, dim + 1]
};

/// For each sample, writes to at.sums [sample, dim + 1]: for each vector element, the sum of the products of all pairs
/// of vectors; then the sum of the weights.
template <class T>
__device__ __forceinline__ void sum_samples(const FmShape& shape, View<const T, 2> weights, int64_t begin, int here,
                                            const FmSamples<T>& at) {
  const int slots = shape.slots, dim = shape.dim, width = shape.slot_width(), of_slots = shape.of_slots();
  const int others = static_cast<int>(cuda::staged_width<T>(shape.others()));
  for_sums(here * width, width, [&](int sample, int k, int lane, bool valid) {
    float sum = 0, squares = 0;
    const T* of_slot = at.slots + sample * of_slots + k;
#pragma unroll 4
    for (int j = lane; j < slots; j += kFmLanes) {
      const auto e = static_cast<float>(of_slot[j * width]);
      sum += e;
      squares += e * e;
    }
    if (k < dim) {
      const T* other = at.others + sample * others + k;
#pragma unroll 4
      for (int j = lane * dim; j < shape.others(); j += kFmLanes * dim) {
        const auto e = static_cast<float>(other[j]);
        sum += e;
        squares += e * e;
      }
    } else {
      const T* other = weights.row(begin + sample);
      for (int j = lane; j < weights.size(1); j += kFmLanes) sum += static_cast<float>(other[j]);
    }
    sum = lanes_sum(sum);
    squares = lanes_sum(squares);
    if (valid && lane == 0) at.sums[sample * width + k] = k < dim ? sum_of_pairs(sum, squares) : sum;
  });
}

template <class T>
__global__ void __launch_bounds__(kFmThreads)
    factorization_machine_kernel(View<const T, 2> x, View<const T, 2> vectors, View<const T, 2> weights, FmShape shape,
                                 FmPacks packs, View<T, 2> y, View<T, 2> second, View<T, 2> first) {
  cuda::start_early();
  extern __shared__ uint4 fm_samples[];
  const int slots = shape.slots, dim = shape.dim, width = shape.slot_width(), of_slots = shape.of_slots();
  const int others = static_cast<int>(cuda::staged_width<T>(shape.others()));
  T* const slots_at = reinterpret_cast<T*>(fm_samples);
  T* const others_at = slots_at + kFmSamples<T> * of_slots;
  float* const sums = reinterpret_cast<float*>(others_at + kFmSamples<T> * others);  // [sample, dim + 1]
  for (int64_t begin = int64_t{blockIdx.x} * kFmSamples<T>; begin < y.size(0);
       begin += int64_t{gridDim.x} * kFmSamples<T>) {
    const int here = static_cast<int>(min(int64_t{kFmSamples<T>}, y.size(0) - begin));
    if (packs.x) {
      cuda::copy_block(x.row(begin * slots), slots_at, here * of_slots);
    } else {
      for (int i = static_cast<int>(threadIdx.x); i < here * of_slots; i += kFmThreads)
        slots_at[i] = x.row(begin * slots + i / width)[i % width];
    }
    cuda::move_rows<true>(vectors, begin, here, others_at, packs.vectors);
    __syncthreads();
    sum_samples(shape, weights, begin, here, FmSamples<T>{slots_at, others_at, sums});
    __syncthreads();
    write_rows(y, begin, here, packs.y, [&](int sample, int column) {
      const int slot = shape.by_dim.divide(column);
      // In slots_at, a weight follows each vector. The index of a vector's element is therefore larger by the number of
      // weights before the element.
      return [=, at = sample * of_slots + column + slot, k = column - slot * dim, left = slots * dim - column,
              other = others_at + sample * others + column - slots * dim]() mutable {
        const T value = left > 0 ? slots_at[at] : *other;
        ++at;
        if (++k == dim) {
          k = 0;
          ++at;
        }
        --left;
        ++other;
        return value;
      };
    });
    if (const int sample = static_cast<int>(threadIdx.x); sample < here) {
      float pairs = 0;
      for (int k = 0; k < dim; ++k) pairs += sums[sample * width + k];
      second.row(begin + sample)[0] = static_cast<T>(pairs);
      first.row(begin + sample)[0] = static_cast<T>(sums[sample * width + dim]);
    }
    __syncthreads();  // the next samples overwrite shared memory
  }
}

/// Generates the elements of x's gradient in memory order: all slots of a sample, then the next sample.
template <class T>
struct SlotGradients {
  const T* gradients;        // gradients of vectors, in shared memory: [sample, columns]
  View<const T, 2> d_first;  // gradients of weights
  int64_t begin;             // the block's first sample
  // columns: elements of a sample in `gradients`. dim: elements of a vector. of_slots: elements of a sample in x.
  int columns, dim, of_slots;
  // The next element belongs to sample `sample`. `element` is its index in the sample, `k` its index in the slot.
  int sample, element, k;
  const T* vectors;  // the address of the next vector element
  __device__ T operator()() {
    T value;
    if (k == dim) {
      value = d_first.row(begin + sample)[0];
      k = 0;
    } else {
      value = *vectors++;
      ++k;
    }
    if (++element == of_slots) {
      element = 0;
      vectors = gradients + ++sample * columns;
    }
    return value;
  }
};

/// Writes the sum of each sample's vectors to sums [sample, dim]. `vectors`: [samples, columns] in shared memory.
template <class T>
__device__ __forceinline__ void sum_vectors(const FmShape& shape, int here, const T* vectors, float* sums) {
  const int dim = shape.dim, columns = static_cast<int>(cuda::staged_width<T>(shape.columns));
  for_sums(here * dim, dim, [&](int sample, int k, int lane, bool valid) {
    float sum = 0;
    const T* e = vectors + sample * columns + k;
#pragma unroll 4
    for (int j = lane * dim; j < shape.columns; j += kFmLanes * dim) sum += static_cast<float>(e[j]);
    sum = lanes_sum(sum);
    if (valid && lane == 0) sums[sample * dim + k] = sum;
  });
}

/// Adds to `gradients` the gradients of the vectors through the products of pairs. `vectors` and `gradients`: [samples,
/// columns] in shared memory. `sums`: [sample, dim].
template <class T>
__device__ __forceinline__ void add_pair_gradients(const FmShape& shape, View<const T, 2> d_second, int64_t begin,
                                                   int here, const T* vectors, const float* sums, T* gradients) {
  constexpr int V = 16 / sizeof(T);
  const int dim = shape.dim, columns = static_cast<int>(cuda::staged_width<T>(shape.columns));
  for (int i = static_cast<int>(threadIdx.x); i < here * columns / V; i += kFmThreads) {
    const int sample = i / (columns / V), column = (i - sample * (columns / V)) * V;
    const auto of_pairs = static_cast<float>(d_second.row(begin + sample)[0]);
    const float* const sum = sums + sample * dim;
    alignas(16) T e[V], gradient[V];
    *reinterpret_cast<uint4*>(e) = reinterpret_cast<const uint4*>(vectors)[i];
    *reinterpret_cast<uint4*>(gradient) = reinterpret_cast<const uint4*>(gradients)[i];
    int k = column - shape.by_dim.divide(column) * dim;
#pragma unroll
    for (int v = 0; v < V; ++v) {  // elements past the last column are never read
      gradient[v] = static_cast<T>(static_cast<float>(gradient[v]) + of_pairs * (sum[k] - static_cast<float>(e[v])));
      if (++k == dim) k = 0;
    }
    reinterpret_cast<uint4*>(gradients)[i] = *reinterpret_cast<const uint4*>(gradient);
  }
}

template <class T>
__global__ void __launch_bounds__(kFmThreads)
    factorization_machine_backward_kernel(View<const T, 2> y, View<const T, 2> d_y, View<const T, 2> d_second,
                                          View<const T, 2> d_first, FmShape shape, FmPacks packs,
                                          FmGradientViews<T> gradients) {
  extern __shared__ uint4 fm_samples[];
  const int slots = shape.slots, dim = shape.dim, width = shape.slot_width();
  const int columns = static_cast<int>(cuda::staged_width<T>(shape.columns));
  T* const vectors_at = reinterpret_cast<T*>(fm_samples);
  T* const gradients_at = vectors_at + kFmSamples<T> * columns;
  float* const sums = reinterpret_cast<float*>(gradients_at + kFmSamples<T> * columns);  // [sample, dim]
  for (int64_t begin = int64_t{blockIdx.x} * kFmSamples<T>; begin < y.size(0);
       begin += int64_t{gridDim.x} * kFmSamples<T>) {
    const int here = static_cast<int>(min(int64_t{kFmSamples<T>}, y.size(0) - begin));
    cuda::move_rows<true>(y, begin, here, vectors_at, packs.y);
    cuda::move_rows<true>(d_y, begin, here, gradients_at, packs.d_y);
    __syncthreads();
    sum_vectors(shape, here, vectors_at, sums);
    __syncthreads();
    add_pair_gradients(shape, d_second, begin, here, vectors_at, sums, gradients_at);
    __syncthreads();
    const auto of_slots = [&](int sample, int element) {
      const int slot = shape.by_width.divide(element);
      return SlotGradients<T>{gradients_at,
                              d_first,
                              begin,
                              columns,
                              dim,
                              shape.of_slots(),
                              sample,
                              element,
                              element - slot * width,
                              gradients_at + sample * columns + element - slot};
    };
    if (gradients.x.data && packs.x) {
      const View<T, 2> block{gradients.x.row(begin * slots), {1, int64_t{here} * shape.of_slots()}, 0};
      write_rows(block, 0, 1, true, [&](int, int i) {
        const int sample = shape.by_of_slots.divide(i);
        return of_slots(sample, i - sample * shape.of_slots());
      });
    } else if (gradients.x.data) {
      write_rows(gradients.x, begin * slots, here * slots, false, [&](int row, int k) {
        const int sample = row / slots;
        return of_slots(sample, (row - sample * slots) * width + k);
      });
    }
    if (gradients.vectors.data)
      write_rows(gradients.vectors, begin, here, packs.vectors, [&](int sample, int column) {
        return [from = gradients_at + sample * columns + slots * dim + column]() mutable { return *from++; };
      });
    if (gradients.weights.data)
      write_rows(gradients.weights, begin, here, false,
                 [&](int sample, int) { return [value = d_first.row(begin + sample)[0]] { return value; }; });
    __syncthreads();  // the next samples overwrite shared memory
  }
}

template <class T>
cuda::Grid fm_grid(int64_t samples, int64_t elements, int64_t sums) {
  const int64_t tiles = (samples + kFmSamples<T> - 1) / kFmSamples<T>;
  return {std::min(tiles, hctr::cuda::blocks_of_device(32)), kFmThreads,
          static_cast<size_t>(kFmSamples<T>) *
              (static_cast<size_t>(elements) * sizeof(T) + static_cast<size_t>(sums) * sizeof(float))};
}

bool one_block(const Tensor& x) { return x.dense() && reinterpret_cast<uintptr_t>(x.bytes()) % 16 == 0; }

}  // namespace

void cuda::factorization_machine(Context& ctx, Tensor x, Tensor vectors, Tensor weights, Tensor y, Tensor second,
                                 Tensor first) {
  const int64_t dim = x.dim(1) - 1;
  const FmShape shape((y.dim(1) - vectors.dim(1)) / dim, dim, y.dim(1));
  dispatch_float(y.dtype(), [&]<class T>() {
    constexpr int V = 16 / sizeof(T);
    const View<const T, 2> others = vectors.view<const T, 2>();
    const View<T, 2> to = y.view<T, 2>();
    if constexpr (sizeof(T) == 2)
      if (takes_words(shape) && is_words(x) && takes_packs<2>(others) && takes_packs<2>(to))
        return launch(ctx, "factorization_machine",
                      early_in_scoring(fm_warps_grid<uint32_t>(y.rows(), shape.of_slots() / 2 + 1)),
                      factorization_machine_words_kernel<T>, x.view<const T, 2>(), others, weights.view<const T, 2>(),
                      shape, to, second.view<T, 2>(), first.view<T, 2>());
    if (takes_lanes(shape) && x.dense())
      return launch(ctx, "factorization_machine", early_in_scoring(fm_warps_grid<T>(y.rows(), 0)),
                    factorization_machine_lanes_kernel<T>, x.view<const T, 2>(), others, weights.view<const T, 2>(),
                    shape, to, second.view<T, 2>(), first.view<T, 2>());
    launch(ctx, "factorization_machine",
           early_in_scoring(fm_grid<T>(y.rows(), shape.of_slots() + staged_width<T>(shape.others()), dim + 1)),
           factorization_machine_kernel<T>, x.view<const T, 2>(), others, weights.view<const T, 2>(), shape,
           FmPacks{one_block(x), takes_packs<V>(others), takes_packs<V>(to), false}, to, second.view<T, 2>(),
           first.view<T, 2>());
  });
}

void cuda::factorization_machine_backward(Context& ctx, int64_t slots, int64_t dim, Tensor y, Tensor d_y,
                                          Tensor d_second, Tensor d_first, const FmGradients& gradients) {
  const FmShape shape(slots, dim, y.dim(1));
  dispatch_float(y.dtype(), [&]<class T>() {
    constexpr int V = 16 / sizeof(T);
    const auto view = [](const std::optional<Tensor>& tensor) { return tensor ? tensor->view<T, 2>() : View<T, 2>{}; };
    const FmGradientViews<T> to{view(gradients.x), view(gradients.vectors), view(gradients.weights)};
    const View<const T, 2> of_y = y.view<const T, 2>(), gradient = d_y.view<const T, 2>();
    if constexpr (sizeof(T) == 2)
      if (takes_words(shape) && (!gradients.x || is_words(*gradients.x)) &&
          (!gradients.vectors || takes_packs<2>(to.vectors)) && takes_packs<2>(of_y) && takes_packs<2>(gradient))
        return launch(ctx, "factorization_machine_backward",
                      fm_warps_grid<uint32_t>(y.rows(), shape.of_slots() / 2 + 1),
                      factorization_machine_backward_words_kernel<T>, of_y, gradient, d_second.view<const T, 2>(),
                      d_first.view<const T, 2>(), shape, to);
    if (takes_lanes(shape) && (!gradients.x || gradients.x->dense()))
      return launch(ctx, "factorization_machine_backward", fm_warps_grid<T>(y.rows(), shape.of_slots()),
                    factorization_machine_backward_lanes_kernel<T>, of_y, gradient, d_second.view<const T, 2>(),
                    d_first.view<const T, 2>(), shape, to);
    launch(ctx, "factorization_machine_backward", fm_grid<T>(y.rows(), 2 * staged_width<T>(shape.columns), dim),
           factorization_machine_backward_kernel<T>, of_y, gradient, d_second.view<const T, 2>(),
           d_first.view<const T, 2>(), shape,
           FmPacks{gradients.x && one_block(*gradients.x), gradients.vectors && takes_packs<V>(to.vectors),
                   takes_packs<V>(of_y), takes_packs<V>(gradient)},
           to);
  });
}

}  // namespace hctr::ops
