// Four keys a thread: 16 bytes of packed keys become 32. The counts are read on the device, so that a recorded step
// takes any batch.
#include "ops/element_loops.cuh"
#include "ops/unpack_keys.h"

namespace hctr::ops {
namespace {

constexpr int kMostInputs = 32;  // of one launch
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

__global__ void unpack_keys_kernel(UnpackInputs inputs, const std::byte* batch, int32_t samples) {
  const UnpackInput& input = inputs.input[blockIdx.x % inputs.count];
  const int64_t thread = int64_t{blockIdx.x / inputs.count} * kUnpackThreads + threadIdx.x,
                threads = int64_t{gridDim.x / inputs.count} * kUnpackThreads;
  const PackedKeys packed = *input.packed;
  if (packed.key_bytes == 4) {
    widen(reinterpret_cast<const uint32_t*>(batch + packed.keys), packed.count, input.keys, thread, threads);
  } else {
    const auto* const from = reinterpret_cast<const int64_t*>(batch + packed.keys);
    for (int64_t i = thread; i < packed.count; i += threads) input.keys[i] = from[i];
  }
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

void cuda::unpack_keys(Context& ctx, const std::byte* batch, std::span<const UnpackedKeys> inputs, int64_t samples) {
  for (size_t first = 0; first < inputs.size(); first += kMostInputs) {
    UnpackInputs some;
    int64_t most = 0;
    for (const UnpackedKeys& input : inputs.subspan(first, std::min<size_t>(kMostInputs, inputs.size() - first))) {
      const int64_t bags = input.offsets.elements() - 1;
      some.input[some.count++] = {input.packed, input.keys.data<int64_t>(), input.offsets.data<int32_t>(), bags};
      most = std::max({most, bags + 1, input.keys.elements() / 4});
    }
    const Grid each =
        grid_for(most, kUnpackThreads, std::max<int64_t>(1, hctr::cuda::blocks_of_device(8) / some.count));
    launch(ctx, "unpack_keys", Grid{each.blocks * some.count, kUnpackThreads}, unpack_keys_kernel, some, batch,
           static_cast<int32_t>(samples));
  }
}

}  // namespace hctr::ops
