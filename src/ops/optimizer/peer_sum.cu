// The kernel that sums an array with a peer GPU. The kernel has few blocks, because the link is the bottleneck and
// GEMMs of a backward pass run concurrently. A thread has several loads in flight, because loads from the peer take
// microseconds.
#include "core/device/launch.cuh"
#include "ops/optimizer/peer_sum.h"

namespace hctr::ops {
namespace {

constexpr int kPeerThreads = 512, kPeerLoads = 4, kMostPeerBlocks = 32;

__device__ bool fits(float value, float largest) { return fabsf(value) <= largest; }  // the comparison is false for NaN
__device__ bool fits(float4 values, float largest) {
  return fits(values.x, largest) && fits(values.y, largest) && fits(values.z, largest) && fits(values.w, largest);
}

/// Adds elements [begin, end) of both arrays. Loads of peer memory bypass L1. Returns whether all sums of this thread
/// are within +-largest.
template <class T>
__device__ bool add_peer_words(T* mine, T* theirs, int64_t begin, int64_t end, float largest) {
  bool all_fit = true;
  const int64_t stride = hctr::cuda::thread_count();
  for (int64_t first = begin + hctr::cuda::thread_index(); first < end; first += kPeerLoads * stride) {
    T here[kPeerLoads], there[kPeerLoads];
#pragma unroll
    for (int j = 0; j < kPeerLoads; ++j) {
      const int64_t i = first + j * stride;
      if (i >= end) continue;
      there[j] = __ldcg(theirs + i);
      here[j] = mine[i];
    }
#pragma unroll
    for (int j = 0; j < kPeerLoads; ++j) {
      const int64_t i = first + j * stride;
      if (i >= end) continue;
      if constexpr (sizeof(T) == sizeof(float4))
        here[j] =
            make_float4(here[j].x + there[j].x, here[j].y + there[j].y, here[j].z + there[j].z, here[j].w + there[j].w);
      else
        here[j] += there[j];
      mine[i] = here[j];
      theirs[i] = here[j];
      all_fit = all_fit && fits(here[j], largest);
    }
  }
  return all_fit;
}

__global__ void sum_half_kernel(float* mine, float* theirs, int64_t begin, int64_t end, bool by_four,
                                const uint32_t* aborted, OverflowSearch search) {
  if (aborted && *aborted != 0) return;
  bool all_fit = true;
  int64_t single = begin;
  if (by_four) {  // each half begins at a multiple of four floats; the array may end between two
    const int64_t whole = end / 4;
    all_fit = add_peer_words(reinterpret_cast<float4*>(mine), reinterpret_cast<float4*>(theirs), begin / 4, whole,
                             search.largest);
    single = max(whole * 4, begin);
  }
  all_fit = add_peer_words(mine, theirs, single, end, search.largest) && all_fit;
  if (search.found && !all_fit) *search.found = 1;  // a benign race, because every thread writes the same value
}

}  // namespace

void cuda::sum_half(Context& ctx, Tensor mine, float* theirs, bool second, const uint32_t* aborted,
                    OverflowSearch search) {
  const int64_t n = mine.elements(), half = first_half(n), begin = second ? half : 0, end = second ? n : half;
  const auto address = reinterpret_cast<uintptr_t>(mine.bytes()) | reinterpret_cast<uintptr_t>(theirs);
  const bool by_four = address % sizeof(float4) == 0;
  const int64_t words = (by_four ? (end - begin) / 4 : end - begin) + 1;
  hctr::cuda::launch(ctx, "sum_half", hctr::cuda::grid_for(words, kPeerThreads, kMostPeerBlocks), sum_half_kernel,
                     mine.data<float>(), theirs, begin, end, by_four, aborted, search);
}

}  // namespace hctr::ops
