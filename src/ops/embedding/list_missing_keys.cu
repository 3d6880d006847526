// Kernels that list missing keys, with one block per tile of keys. The first kernel counts the missing keys of each
// tile. The second kernel adds the counts of all earlier tiles and writes the keys. There are too few tiles to justify
// a separate prefix-sum launch.
#include "core/device/launch.cuh"
#include "ops/common/reduce.cuh"
#include "ops/embedding/list_missing_keys.h"

namespace hctr::ops {
namespace {

constexpr int kMissingThreads = 256;
constexpr int64_t kMissingTile = 8 * kMissingThreads;  // keys per tile

int64_t missing_tiles(int64_t keys) { return std::max<int64_t>(1, (keys + kMissingTile - 1) / kMissingTile); }

__device__ bool is_missing(const int32_t* rows, int64_t p, int64_t keys) { return p < keys && rows[p] == 0; }

/// Returns the sum over a block of kMissingThreads, in every thread. Call from all threads of the block.
__device__ int32_t sum_of_block(int32_t mine) {
  __shared__ int32_t sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  const int32_t of_warp = cuda::warp_sum(mine);
  if (threadIdx.x % 32 == 0 && of_warp != 0) atomicAdd(&sum, of_warp);
  __syncthreads();
  return sum;
}

__global__ void count_missing_kernel(KeyBatch batch, const int32_t* rows, int32_t* of_tile) {
  const int64_t keys = batch.size(), first = int64_t{blockIdx.x} * kMissingTile;
  int32_t mine = 0;
  for (int64_t i = threadIdx.x; i < kMissingTile; i += kMissingThreads) mine += is_missing(rows, first + i, keys);
  const int32_t sum = sum_of_block(mine);
  if (threadIdx.x == 0) of_tile[blockIdx.x] = sum;
}

__global__ void list_missing_kernel(KeyBatch batch, const int32_t* rows, const int32_t* of_tile, MissingKey* found,
                                    int32_t* count) {
  constexpr int kWarps = kMissingThreads / 32;
  __shared__ int32_t of_warp[kWarps];
  const bool last = blockIdx.x + 1 == gridDim.x;
  const int32_t here = of_tile[blockIdx.x];
  if (here == 0 && !last) return;
  int32_t before = 0;
  for (int64_t tile = threadIdx.x; tile < blockIdx.x; tile += kMissingThreads) before += of_tile[tile];
  before = sum_of_block(before);
  if (last && threadIdx.x == 0) *count = before + here;
  if (here == 0) return;
  const int64_t keys = batch.size(), first = int64_t{blockIdx.x} * kMissingTile;
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  for (int64_t i = 0; i < kMissingTile; i += kMissingThreads) {
    const int64_t p = first + i + threadIdx.x;
    const bool missing = is_missing(rows, p, keys);
    const uint32_t votes = __ballot_sync(0xffffffffu, missing);
    if (lane == 0) of_warp[warp] = __popc(votes);
    __syncthreads();
    int32_t position = before + __popc(votes & ((1u << lane) - 1));
    for (int w = 0; w < kWarps; ++w) {
      if (w < warp) position += of_warp[w];
      before += of_warp[w];
    }
    if (missing) found[position] = {batch.keys[p], batch.slot_of(static_cast<int32_t>(p)), static_cast<int32_t>(p)};
    __syncthreads();
  }
}

}  // namespace

namespace cuda {

using hctr::cuda::launch;

size_t missing_scratch_bytes(int64_t key_capacity) {
  return static_cast<size_t>(missing_tiles(key_capacity)) * sizeof(int32_t);
}

void list_missing_keys(Context& ctx, KeyBatch batch, const int32_t* rows, std::byte* scratch, MissingKey* found,
                       int32_t* count) {
  auto* const of_tile = reinterpret_cast<int32_t*>(scratch);
  const hctr::cuda::Grid grid{missing_tiles(batch.key_capacity), kMissingThreads, 0};
  launch(ctx, "count_missing_keys", grid, count_missing_kernel, batch, rows, of_tile);
  launch(ctx, "list_missing_keys", grid, list_missing_kernel, batch, rows, of_tile, found, count);
}

}  // namespace cuda
}  // namespace hctr::ops
