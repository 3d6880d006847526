// Kernels that number runs, with grid-stride loops over positions or over runs.
#include "ops/embedding/row_sums.h"

#include "core/device/launch.cuh"

namespace hctr::ops {
namespace {

using hctr::cuda::BlockRange;
constexpr int kRunThreads = 256;

__device__ void number_some_runs(BlockRange range, RowGroups groups, int64_t key_capacity, int32_t* run_of) {
  const int32_t runs = groups.counts->runs;
  const int64_t padding = runs > 0 ? groups.run_begin[0] : key_capacity;
  // A binary search in `run_begin` finds the run of each position. Otherwise one thread would have to process all
  // positions of a long run.
  for (int64_t p = range.thread_index(); p < key_capacity; p += range.thread_count()) {
    if (p < padding) {
      run_of[p] = 0;
      continue;
    }
    int32_t low = 0, high = runs - 1;
    while (low < high) {
      const int32_t middle = (low + high + 1) / 2;
      if (groups.run_begin[middle] <= p)
        low = middle;
      else
        high = middle - 1;
    }
    run_of[p] = low;
  }
}

__device__ void write_runs(BlockRange, RowGroups groups, int32_t* host) {
  *static_cast<volatile int32_t*>(host) = groups.counts->runs;  // the host reads the value after waiting for the stream
}

__device__ void find_run_keys(BlockRange range, RowGroups groups, RowIdentity identity, int64_t* keys) {
  for (int64_t run = range.thread_index(); run < groups.counts->runs; run += range.thread_count())
    keys[run] = identity.of(groups.rows[groups.run_begin[run]]).key;
}

}  // namespace

namespace cuda {

using hctr::cuda::grid_for;
using hctr::cuda::launch_lockstep;

void number_runs(Context& ctx, RowGroups groups, int64_t key_capacity, int32_t* run_of) {
  launch_lockstep<number_some_runs, kRunThreads>(ctx, "number_runs", grid_for(key_capacity, kRunThreads).blocks, groups,
                                                 key_capacity, run_of);
}
void report_runs(Context& ctx, RowGroups groups, int32_t* host) {
  launch_lockstep<write_runs, 1>(ctx, "report_runs", 1, groups, host);
}
void keys_of_runs(Context& ctx, RowGroups groups, RowIdentity identity, int64_t key_capacity, int64_t* keys) {
  launch_lockstep<find_run_keys, kRunThreads>(ctx, "keys_of_runs", grid_for(key_capacity, kRunThreads).blocks, groups,
                                              identity, keys);
}

}  // namespace cuda
}  // namespace hctr::ops
