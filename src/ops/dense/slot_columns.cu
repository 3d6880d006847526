// Kernels that split and join slot columns. A block stages a few samples in shared memory. The samples are one
// contiguous range of x, and a few short rows of each y. Global memory is accessed with wide loads and stores; only
// shared memory is accessed element by element.
#include "ops/dense/slot_columns.h"

#include "ops/gemm/staged_rows.cuh"

namespace hctr::ops {
namespace {

constexpr int kSlotSamples = 8;  // samples per block: their slots fill a multiple of 16 bytes, for any width
constexpr size_t kMostSlotParts = 4, kMostSlotBytes = 32 * 1024;

template <class T>
struct SlotParts {
  View<T, 2> at[kMostSlotParts];
  int first[kMostSlotParts];  // the part starts at this column of every slot
  bool packs[kMostSlotParts];
  int count;
};

/// Copies the columns of one part, for `samples` samples from row `row` on, between global memory and the slots in
/// shared memory.
template <int V, bool kSplit, class T>
__device__ void move_part(View<T, 2> part, int64_t row, int samples, int slots, int width, int first, T* shared) {
  const int columns = static_cast<int>(part.size(1)), of_slot = columns / slots, per_row = (columns + V - 1) / V;
  for (int i = static_cast<int>(threadIdx.x); i < samples * per_row; i += static_cast<int>(blockDim.x)) {
    const int sample = i / per_row, begin = i % per_row * V;
    T* memory = part.row(row + sample) + begin;
    cuda::Pack<T, V> pack;
    const bool whole = begin + V <= columns;
    if (!kSplit && whole) pack = *reinterpret_cast<const cuda::Pack<T, V>*>(memory);
    int column = begin % of_slot;
    T* slot = shared + (sample * slots + begin / of_slot) * width + first;
#pragma unroll
    for (int v = 0; v < V; ++v) {
      if (begin + v >= columns) break;
      if constexpr (kSplit) {
        if (whole)
          pack.at[v] = slot[column];
        else
          memory[v] = slot[column];
      } else {
        slot[column] = whole ? pack.at[v] : memory[v];
      }
      if (++column == of_slot) {
        column = 0;
        slot += width;
      }
    }
    if (kSplit && whole) *reinterpret_cast<cuda::Pack<T, V>*>(memory) = pack;
  }
}

template <bool kSplit, class T>
__global__ void move_slots_kernel(T* x, int64_t samples, int slots, int width,
                                  const __grid_constant__ SlotParts<T> parts) {
  extern __shared__ uint4 slots_of_samples[];
  T* shared = reinterpret_cast<T*>(slots_of_samples);
  constexpr int V = 16 / sizeof(T);
  for (int64_t first = int64_t{blockIdx.x} * kSlotSamples; first < samples;
       first += int64_t{gridDim.x} * kSlotSamples) {
    const int here = static_cast<int>(min(int64_t{kSlotSamples}, samples - first)), elements = here * slots * width;
    T* memory = x + first * slots * width;
    if constexpr (kSplit) {
      cuda::copy_block(memory, shared, elements);
      __syncthreads();
    }
    for (int p = 0; p < parts.count; ++p)
      if (parts.packs[p])
        move_part<V, kSplit>(parts.at[p], first, here, slots, width, parts.first[p], shared);
      else
        move_part<1, kSplit>(parts.at[p], first, here, slots, width, parts.first[p], shared);
    __syncthreads();
    if constexpr (!kSplit) {
      cuda::copy_block(shared, memory, elements);
      __syncthreads();  // the next samples overwrite shared memory
    }
  }
}

/// Launches the kernel. Returns false if the kernel does not support the layout of the tensors.
template <bool kSplit>
bool move_slots(Context& ctx, const char* name, const Tensor& x, int64_t slots, const std::vector<Tensor>& y) {
  const size_t bytes = static_cast<size_t>(kSlotSamples * slots * x.dim(1)) * size_of(x.dtype());
  if (!x.dense() || y.size() > kMostSlotParts || bytes > kMostSlotBytes ||
      reinterpret_cast<uintptr_t>(x.bytes()) % 16 != 0)
    return false;
  dispatch_float(x.dtype(), [&]<class T>() {
    SlotParts<T> parts{};
    int first = 0;
    for (const Tensor& part : y) {
      if (part.dim(1) == 0) continue;
      const View<T, 2> view = part.view<T, 2>();
      parts.at[parts.count] = view;
      parts.first[parts.count] = first;
      parts.packs[parts.count++] = cuda::takes_packs<16 / sizeof(T)>(view);
      first += static_cast<int>(part.dim(1) / slots);
    }
    const int64_t samples = x.dim(0) / slots, tiles = (samples + kSlotSamples - 1) / kSlotSamples;
    cuda::launch(ctx, name, cuda::Grid{std::min(tiles, hctr::cuda::blocks_of_device(32)), 256, bytes},
                 move_slots_kernel<kSplit, T>, x.data<T>(), samples, static_cast<int>(slots),
                 static_cast<int>(x.dim(1)), parts);
  });
  return true;
}

}  // namespace

void cuda::split_slots(Context& ctx, Tensor x, int64_t slots, const std::vector<Tensor>& y) {
  if (!move_slots<true>(ctx, "split_slots", x, slots, y)) split_slots_by_part(ctx, x, slots, y);
}

void cuda::join_slots(Context& ctx, const std::vector<Tensor>& y, int64_t slots, Tensor x) {
  if (!move_slots<false>(ctx, "join_slots", x, slots, y)) join_slots_by_part(ctx, y, slots, x);
}

}  // namespace hctr::ops
