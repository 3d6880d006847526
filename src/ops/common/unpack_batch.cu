// The kernel that unpacks an uploaded batch. A thread widens four 32-bit keys (16 to 32 bytes) or writes 16 bytes of a
// row of dense values. The kernel reads the key counts on the device, so a recorded CUDA graph works for any batch.
#include "ops/common/element_loops.cuh"
#include "ops/common/unpack_batch.h"

namespace hctr::ops {
namespace {

constexpr int kMostInputs = 32;  // sparse inputs per launch
constexpr int kUnpackThreads = 256;

struct UnpackInput {
  const PackedKeys* packed;
  int64_t* keys;
  int32_t* offsets;
  int64_t bags;
};
struct UnpackInputs {
  UnpackInput input[kMostInputs];
  int count = 0;
};
struct PaddedRows {
  const float* from;
  int64_t width;
  View<uint4, 2> to;  // packs of 16 bytes; 0 rows: no dense values
};

__device__ void widen(const uint32_t* from, int32_t count, int64_t* to, int64_t thread, int64_t threads) {
  const int64_t fours = count / 4;
  for (int64_t i = thread; i < fours; i += threads) {
    const uint4 keys = reinterpret_cast<const uint4*>(from)[i];
    auto* const pairs = reinterpret_cast<longlong2*>(to) + 2 * i;
    pairs[0] = make_longlong2(keys.x, keys.y);
    pairs[1] = make_longlong2(keys.z, keys.w);
  }
  if (thread < count % 4) to[4 * fours + thread] = from[4 * fours + thread];
}

/// Side of the tiles that transpose keys from sample order to slot order in shared memory, with coalesced loads and
/// stores.
constexpr int kSquareSide = 32;
using Square = int64_t[kSquareSide][kSquareSide + 1];
template <class Key>
__device__ void widen_by_slot(const PackedKeys& packed, const std::byte* batch, int64_t* to, int64_t block,
                              int64_t blocks, Square& square) {
  const auto* const from = reinterpret_cast<const Key*>(batch + packed.keys);
  const int64_t across = (packed.slots + kSquareSide - 1) / kSquareSide,
                down = (packed.rows + kSquareSide - 1) / kSquareSide;
  const int lane = static_cast<int>(threadIdx.x) % kSquareSide, warp = static_cast<int>(threadIdx.x) / kSquareSide;
  for (int64_t i = block; i < across * down; i += blocks) {
    const int64_t row = i / across * kSquareSide, slot = i % across * kSquareSide;
    __syncthreads();
    for (int r = warp; r < kSquareSide; r += kUnpackThreads / kSquareSide)
      if (row + r < packed.rows && slot + lane < packed.slots)
        square[r][lane] = static_cast<int64_t>(from[(row + r) * packed.slots + slot + lane]);
    __syncthreads();
    for (int s = warp; s < kSquareSide; s += kUnpackThreads / kSquareSide)
      if (slot + s < packed.slots && row + lane < packed.rows)
        to[(slot + s) * packed.rows + row + lane] = square[lane][s];
  }
}

template <class Key>
__device__ void widen_keys(const PackedKeys& packed, const std::byte* batch, int64_t* to, int64_t block, int64_t blocks,
                           Square& square) {
  if (packed.slots > 0) return widen_by_slot<Key>(packed, batch, to, block, blocks, square);
  const auto* const from = reinterpret_cast<const Key*>(batch + packed.keys);
  for (int64_t i = block * kUnpackThreads + threadIdx.x; i < packed.count; i += blocks * kUnpackThreads)
    to[i] = static_cast<int64_t>(from[i]);
}

template <class T>
__device__ void pad_rows(const PaddedRows& rows, int64_t thread, int64_t threads) {
  constexpr uint32_t kEach = 16 / sizeof(T);
  // fits 32 bits, because a batch has fewer than 2^32 packs
  const auto per_row = static_cast<uint32_t>(rows.to.size(1));
  for (int64_t i = thread; i < rows.to.size(0) * per_row; i += threads) {
    const auto pack = static_cast<uint32_t>(i), row = pack / per_row, first = (pack - row * per_row) * kEach;
    const float* const from = rows.from + row * rows.width;
    alignas(16) T values[kEach];
#pragma unroll
    for (uint32_t e = 0; e < kEach; ++e) values[e] = static_cast<T>(first + e < rows.width ? from[first + e] : 0.0f);
    rows.to.row(row)[first / kEach] = *reinterpret_cast<const uint4*>(values);
  }
}

/// kEarly: launched with Grid::early.
template <class T, bool kEarly>
__global__ void unpack_batch_kernel(UnpackInputs inputs, PaddedRows rows, const std::byte* batch, int32_t samples) {
  if constexpr (kEarly) hctr::cuda::start_early();
  const int jobs = inputs.count + (rows.to.size(0) > 0), job = static_cast<int>(blockIdx.x) % jobs;
  const int64_t thread = int64_t{blockIdx.x / jobs} * kUnpackThreads + threadIdx.x,
                threads = int64_t{gridDim.x / jobs} * kUnpackThreads;
  if (job == inputs.count) return pad_rows<T>(rows, thread, threads);
  const UnpackInput& input = inputs.input[job];
  const PackedKeys packed = *input.packed;
  const int64_t block = blockIdx.x / jobs, blocks = gridDim.x / jobs;
  __shared__ Square square;
  if (packed.key_bytes == 8)
    widen_keys<int64_t>(packed, batch, input.keys, block, blocks, square);
  else if (packed.sign_extends)
    widen_keys<int32_t>(packed, batch, input.keys, block, blocks, square);
  else if (packed.slots > 0)
    widen_keys<uint32_t>(packed, batch, input.keys, block, blocks, square);
  else
    widen(reinterpret_cast<const uint32_t*>(batch + packed.keys), packed.count, input.keys, thread, threads);
  if (packed.offsets == PackedKeys::kOnes) {
    for (int64_t i = thread; i <= input.bags; i += threads) {
      const auto bag = static_cast<uint32_t>(i), slot = bag / static_cast<uint32_t>(samples);
      input.offsets[i] = static_cast<int32_t>(packed.begin_of_ones(slot, bag - slot * static_cast<uint32_t>(samples)));
    }
  } else {
    const auto* const from = reinterpret_cast<const int32_t*>(batch + packed.offsets);
    for (int64_t i = thread; i <= input.bags; i += threads) input.offsets[i] = from[i];
  }
}

}  // namespace

void cuda::unpack_batch(Context& ctx, const std::byte* batch, std::span<const UnpackedKeys> inputs,
                        const std::optional<UnpackedRows>& dense, int64_t samples) {
  PaddedRows rows{};
  if (dense) {
    const int64_t packs = dense->rows.row_stride() * static_cast<int64_t>(size_of(dense->rows.dtype())) / 16;
    rows = {dense->from, dense->rows.dim(1), {reinterpret_cast<uint4*>(dense->rows.bytes()), {samples, packs}, packs}};
  }
  size_t first = 0;
  do {  // the first launch also unpacks the dense rows, so it is needed even without sparse inputs
    UnpackInputs some;
    int64_t most = rows.to.size(0) * rows.to.size(1);
    for (const UnpackedKeys& input : inputs.subspan(first, std::min<size_t>(kMostInputs, inputs.size() - first))) {
      const int64_t bags = input.offsets.elements() - 1;
      some.input[some.count++] = {input.packed, input.keys.data<int64_t>(), input.offsets.data<int32_t>(), bags};
      most = std::max({most, bags + 1, input.keys.elements() / 4});
    }
    const int jobs = some.count + (rows.to.size(0) > 0);
    if (jobs == 0) return;
    const Grid each = grid_for(most, kUnpackThreads, std::max<int64_t>(1, hctr::cuda::blocks_of_device(8) / jobs));
    dispatch_float(dense ? dense->rows.dtype() : DType::f32, [&]<class T>() {
      // in training, waiting blocks would occupy multiprocessors that other streams need
      const bool starts_early = ScoringScope::rules() != nullptr;
      launch(ctx, "unpack_batch", Grid{each.blocks * jobs, kUnpackThreads, 0, starts_early},
             starts_early ? unpack_batch_kernel<T, true> : unpack_batch_kernel<T, false>, some, rows, batch,
             static_cast<int32_t>(samples));
    });
    rows = {};
    first += kMostInputs;
  } while (first < inputs.size());
}

}  // namespace hctr::ops
