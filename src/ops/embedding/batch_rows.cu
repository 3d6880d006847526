// Kernels that copy row numbers: one key per thread, in a grid-stride loop.
#include "ops/embedding/batch_rows.h"

#include <algorithm>

#include "core/device/launch.cuh"

namespace hctr::ops {
namespace {

using hctr::cuda::BlockRange;
constexpr int kCopyThreads = 256;

__device__ void read_some_rows(BlockRange threads, FeatureRange range, const int32_t* rows, int32_t* to) {
  const int32_t begin = *range.begin;
  const int64_t count = *range.end - begin;
  for (int64_t i = threads.thread_index(); i < range.most; i += threads.thread_count())
    to[i] = i < count ? rows[begin + i] : 0;
}

__device__ void place_some_rows(BlockRange threads, FeatureRange range, const int32_t* from, const uint32_t* last_row,
                                int64_t capacity, int32_t* rows) {
  const int64_t begin = *range.begin, end = *range.end;
  const uint32_t last = *last_row;
  for (int64_t p = begin + threads.thread_index(); p < end || p < capacity; p += threads.thread_count()) {
    const int32_t row = p < end ? from[p - begin] : 0;
    rows[p] = static_cast<uint32_t>(row) <= last ? row : 0;
  }
}

}  // namespace

namespace cuda {

using hctr::cuda::grid_for;
using hctr::cuda::launch_lockstep;

void read_rows(Context& ctx, FeatureRange range, const int32_t* rows, int32_t* to) {
  launch_lockstep<read_some_rows, kCopyThreads>(ctx, "read_rows", grid_for(range.most, kCopyThreads).blocks, range,
                                                rows, to);
}
void place_rows(Context& ctx, FeatureRange range, const int32_t* from, const uint32_t* last_row, int64_t capacity,
                int32_t* rows) {
  launch_lockstep<place_some_rows, kCopyThreads>(ctx, "place_rows",
                                                 grid_for(std::max<int64_t>(range.most, 1), kCopyThreads).blocks, range,
                                                 from, last_row, capacity, rows);
}

}  // namespace cuda
}  // namespace hctr::ops
