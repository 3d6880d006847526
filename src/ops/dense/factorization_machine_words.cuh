// Factorization machine kernels for two-byte elements, even vector lengths and an even number of slots. A warp
// processes one sample, a few vectors at a time; a lane processes two elements of one of these vectors. Lanes load and
// store words of two adjacent elements. If a slot's vector starts in the middle of a word, a lane combines halves of
// two words.
#pragma once

#include <cstring>

#include "core/base/half.h"
#include "ops/dense/factorization_machine_shape.cuh"

namespace hctr::ops {
namespace {

constexpr int kFmKept = 8;  // words of y and d_y that a lane keeps in registers

bool takes_words(const FmShape& shape) { return shape.dim % 2 == 0 && shape.dim <= 32 && shape.slots % 2 == 0; }

/// Whether the slots of every sample are aligned to a word.
bool is_words(const Tensor& x) { return x.dense() && reinterpret_cast<uintptr_t>(x.bytes()) % 4 == 0; }

template <class T>
__device__ float2 elements_of(uint32_t word) {
  cuda::Pack<T, 2> pack;
  std::memcpy(&pack, &word, sizeof word);
  return {static_cast<float>(pack.at[0]), static_cast<float>(pack.at[1])};
}

template <class T>
__global__ void __launch_bounds__(kFmWarpThreads)
    factorization_machine_words_kernel(View<const T, 2> x, View<const T, 2> vectors, View<const T, 2> weights,
                                       FmShape shape, View<T, 2> y, View<T, 2> second, View<T, 2> first) {
  cuda::start_early();
  constexpr int kOthers = 4;  // words of the vectors outside the slots, loaded together with words of the slots
  extern __shared__ uint32_t fm_words[];
  const FmWarp<2> warp(shape);
  const int of_slots = shape.of_slots() / 2, slot_words = shape.slots * warp.per_vector, words = shape.columns / 2;
  // The extra word allows a read past the last word; the value read is unused.
  uint32_t* const slots = fm_words + static_cast<int>(threadIdx.x) / 32 * (of_slots + 1);
  const int64_t b = cuda::thread_index() / 32;
  if (b >= y.size(0)) return;
  const auto *from = reinterpret_cast<const uint32_t*>(x.row(b * shape.slots)),
             *others = reinterpret_cast<const uint32_t*>(vectors.row(b)) - slot_words;
  auto* to = reinterpret_cast<uint32_t*>(y.row(b));
  const int first_word = warp.works() ? warp.lane : words,
            first_other = warp.works() ? warp.first_from(slot_words) : words;
  uint32_t kept[kOthers];
#pragma unroll
  for (int i = 0; i < kOthers; ++i) {
    const int w = first_other + i * warp.lanes;
    kept[i] = w < words ? others[w] : 0;
  }
  const float first_weight = warp.lane < weights.size(1) ? static_cast<float>(weights.row(b)[warp.lane]) : 0;
  for (int begin = warp.lane; begin < of_slots; begin += 32 * kFmKept) {
    uint32_t loaded[kFmKept];
#pragma unroll
    for (int i = 0; i < kFmKept; ++i)
      if (begin + 32 * i < of_slots) loaded[i] = from[begin + 32 * i];
#pragma unroll
    for (int i = 0; i < kFmKept; ++i)
      if (begin + 32 * i < of_slots) slots[begin + 32 * i] = loaded[i];
  }
  __syncwarp();
  float sum[2] = {}, squares[2] = {};
  const auto take = [&](int w, uint32_t word) {
    to[w] = word;
    const float2 e = elements_of<T>(word);
    sum[0] += e.x;
    sum[1] += e.y;
    squares[0] += e.x * e.x;
    squares[1] += e.y * e.y;
  };
  for (int w = first_word, at = warp.first_element(shape); w < slot_words; w += warp.lanes, at += warp.step())
    take(w, __funnelshift_r(slots[at / 2], slots[at / 2 + 1], 16 * (at % 2)));
#pragma unroll
  for (int i = 0; i < kOthers; ++i)
    if (const int w = first_other + i * warp.lanes; w < words) take(w, kept[i]);
  for (int w = first_other + kOthers * warp.lanes; w < words; w += warp.lanes) take(w, others[w]);
  float pairs = 0;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const float all = warp.sum(sum[i]), all_squares = warp.sum(squares[i]);
    if (warp.lane < warp.per_vector) pairs += sum_of_pairs(all, all_squares);
  }
  float weight = 0;
  const T* const elements = reinterpret_cast<const T*>(slots);
  for (int j = warp.lane; j < shape.slots; j += 32)
    weight += static_cast<float>(elements[j * shape.slot_width() + shape.dim]);
  weight += first_weight;
  for (int j = warp.lane + 32; j < weights.size(1); j += 32) weight += static_cast<float>(weights.row(b)[j]);
  warp.write_sums(b, pairs, weight, second, first);
}

template <class T>
__global__ void __launch_bounds__(kFmWarpThreads, 4)
    factorization_machine_backward_words_kernel(View<const T, 2> y, View<const T, 2> d_y, View<const T, 2> d_second,
                                                View<const T, 2> d_first, FmShape shape, FmGradientViews<T> gradients) {
  extern __shared__ uint32_t fm_words[];
  const FmWarp<2> warp(shape);
  const int of_slots = shape.of_slots() / 2, slot_words = shape.slots * warp.per_vector, words = shape.columns / 2;
  uint32_t* const slots = fm_words + static_cast<int>(threadIdx.x) / 32 * (of_slots + 1);
  T* const elements = reinterpret_cast<T*>(slots);
  const int64_t b = cuda::thread_index() / 32;
  if (b >= y.size(0)) return;
  const auto* of_y = reinterpret_cast<const uint32_t*>(y.row(b));
  const auto* of_d_y = reinterpret_cast<const uint32_t*>(d_y.row(b));
  uint32_t y_words[kFmKept], d_y_words[kFmKept];  // the lane's first words, loaded together
#pragma unroll
  for (int i = 0; i < kFmKept; ++i) {
    const int w = warp.lane + i * warp.lanes;
    const bool has = warp.works() && w < words;
    y_words[i] = has ? of_y[w] : 0;
    d_y_words[i] = has ? of_d_y[w] : 0;
  }
  const auto of_pairs = static_cast<float>(d_second.row(b)[0]);
  const T of_weight = d_first.row(b)[0];
  // the first word that is not in registers
  const int behind = warp.works() ? warp.lane + kFmKept * warp.lanes : words;
  float sum[2] = {};
  const auto add = [&](uint32_t word) {
    const float2 e = elements_of<T>(word);
    sum[0] += e.x;
    sum[1] += e.y;
  };
#pragma unroll
  for (const uint32_t word : y_words) add(word);
  for (int w = behind; w < words; w += warp.lanes) add(of_y[w]);
#pragma unroll
  for (float& of_column : sum) of_column = warp.sum_for_all(of_column, shape);
  auto* others = reinterpret_cast<uint32_t*>(gradients.vectors.data ? gradients.vectors.row(b) : nullptr);
  const auto give = [&](int w, int at, uint32_t of_word, uint32_t d_word) {
    const float2 e = elements_of<T>(of_word), d = elements_of<T>(d_word);
    const uint32_t word = round_two<T>(d.x + of_pairs * (sum[0] - e.x), d.y + of_pairs * (sum[1] - e.y));
    if (w < slot_words) {
      auto* to = reinterpret_cast<uint16_t*>(elements + at);
      to[0] = static_cast<uint16_t>(word);
      to[1] = static_cast<uint16_t>(word >> 16);
    } else if (others) {
      others[w - slot_words] = word;
    }
  };
  const int first_element = warp.first_element(shape);
#pragma unroll
  for (int i = 0; i < kFmKept; ++i) {
    const int w = warp.lane + i * warp.lanes;
    if (warp.works() && w < words) give(w, first_element + i * warp.step(), y_words[i], d_y_words[i]);
  }
  for (int w = behind, at = first_element + kFmKept * warp.step(); w < words; w += warp.lanes, at += warp.step())
    give(w, at, of_y[w], of_d_y[w]);
  if (gradients.x.data) {
    for (int j = warp.lane; j < shape.slots; j += 32) elements[j * shape.slot_width() + shape.dim] = of_weight;
    __syncwarp();
    auto* to = reinterpret_cast<uint32_t*>(gradients.x.row(b * shape.slots));
    // factorization_machine_lanes.cuh has the same loop. A common function for both would compile to other address
    // arithmetic.
#pragma unroll 4
    for (int i = warp.lane; i < of_slots; i += 32) to[i] = slots[i];
  }
  if (gradients.weights.data)
    for (int j = warp.lane; j < gradients.weights.size(1); j += 32) gradients.weights.row(b)[j] = of_weight;
}

}  // namespace
}  // namespace hctr::ops
