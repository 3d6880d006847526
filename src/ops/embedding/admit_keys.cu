#include <thrust/iterator/counting_iterator.h>

#include <algorithm>
#include <cub/device/device_select.cuh>

#include "core/device/launch.cuh"
#include "ops/common/reduce.cuh"
#include "ops/embedding/admit_keys.h"

namespace hctr::ops {
namespace {

using hctr::cuda::thread_count;
using hctr::cuda::thread_index;

/// Returns the largest index i < count with ascending[i] <= x. Requires ascending[0] <= x.
__device__ int64_t last_at_most(const int32_t* ascending, int64_t count, int32_t x) {
  int64_t low = 0, high = count - 1;
  while (low < high) {
    const int64_t middle = (low + high + 1) / 2;
    if (ascending[middle] <= x)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

__global__ void see_all_rows_kernel(HashIndex index, IndexState* all) {
  *all = *index.state;
  all->finished = min(all->rows, all->row_capacity);
}

__global__ void mark_unknown_kernel(KeyBatch batch, const int32_t* rows, uint8_t* wanted) {
  const int64_t size = batch.size();
  for (int64_t p = thread_index(); p < batch.key_capacity; p += thread_count()) wanted[p] = p < size && rows[p] == 0;
}

struct Wanted {
  const uint8_t* wanted;
  __device__ bool operator()(int32_t p) const { return wanted[p] != 0; }
};

void select_positions(cudaStream_t stream, void* temporary, size_t& bytes, const uint8_t* wanted, int64_t count,
                      int32_t* positions, int32_t* selected) {
  HCTR_CHECK(cub::DeviceSelect::If(temporary, bytes, thrust::counting_iterator<int32_t>(0), positions, selected,
                                   static_cast<int>(count), Wanted{wanted}, stream));
}

/// Completes a selection whose positions and total count are set: writes the keys and the slot offsets.
__global__ void fill_selection_kernel(KeyBatch batch, KeySelection selection) {
  const int32_t count = selection.offsets[batch.slots];
  for (int64_t i = thread_index(); i < count; i += thread_count())
    selection.keys[i] = batch.keys[selection.positions[i]];
  for (int64_t s = thread_index(); s < batch.slots; s += thread_count()) {
    const int32_t first = batch.offsets[s * batch.samples];  // first key of slot s in the batch
    int32_t low = 0, high = count;
    while (low < high) {
      const int32_t middle = (low + high) / 2;
      if (selection.positions[middle] < first)
        low = middle + 1;
      else
        high = middle;
    }
    selection.offsets[s] = low;
  }
}

__global__ void admit_keys_kernel(KeyBatch batch, KeySelection unknown, const int32_t* candidates, AdmissionRule rule,
                                  const GateState* gate, const StepState* state, uint8_t* wanted) {
  const int32_t count = gate->closed ? 0 : unknown.offsets[batch.slots];
  for (int64_t i = thread_index(); i < batch.key_capacity; i += thread_count()) {
    bool admitted = false;
    if (i < count && rule.occurrences) {
      admitted = rule.occurrences[candidates[i]] >= rule.min_count;
    } else if (i < count) {
      const int32_t p = unknown.positions[i];
      // the last bag that starts at or before p; earlier bags with the same start are empty
      const int64_t bag = last_at_most(batch.offsets, batch.bags(), p);
      admitted = rule.drawn(unknown.keys[i], batch, bag, state->first_sample);
    }
    wanted[i] = admitted;
  }
}

__global__ void forget_admitted_kernel(KeyBatch unknown, const int32_t* candidates, const uint8_t* wanted,
                                       uint32_t* occurrences) {
  const int64_t count = unknown.size();
  for (int64_t i = thread_index(); i < count; i += thread_count())
    if (wanted[i]) occurrences[candidates[i]] = 0;
}

__global__ void hand_out_rows_kernel(KeyBatch unknown, const int32_t* positions, const int32_t* found, GateState* gate,
                                     int32_t* rows) {
  const bool closed = gate->closed != 0;
  const int64_t count = unknown.size();
  uint32_t rowless = 0;
  for (int64_t i = thread_index(); i < count; i += thread_count()) {
    int32_t row = found[i];
    if (row == 0) {
      if (closed) row = static_cast<int32_t>(gate->shared_row);
      ++rowless;
    }
    rows[positions[i]] = row;
  }
  rowless = cuda::warp_sum(rowless);
  if (threadIdx.x % 32 == 0 && rowless != 0)
    atomicAdd(reinterpret_cast<unsigned long long*>(closed ? &gate->on_shared_row : &gate->without_row),
              static_cast<unsigned long long>(rowless));
}

__global__ void share_row_kernel(KeyBatch batch, const GateState* gate, int32_t* rows) {
  const auto shared = static_cast<int32_t>(gate->shared_row);
  if (shared == 0) return;
  const int64_t size = batch.size();
  for (int64_t p = thread_index(); p < size; p += thread_count())
    if (rows[p] == 0) rows[p] = shared;
}

}  // namespace

namespace cuda {

using hctr::cuda::enqueue;
using hctr::cuda::grid_for;
using hctr::cuda::launch;

void see_all_rows(Context& ctx, HashIndex index, IndexState* all) {
  launch(ctx, "see_all_rows", {1, 1, 0}, see_all_rows_kernel, index, all);
}

void mark_unknown(Context& ctx, KeyBatch batch, const int32_t* rows, uint8_t* wanted) {
  launch(ctx, "mark_unknown", grid_for(batch.key_capacity), mark_unknown_kernel, batch, rows, wanted);
}

size_t select_keys_bytes(int64_t key_capacity) {
  size_t bytes = 0;
  select_positions(nullptr, nullptr, bytes, nullptr, key_capacity, nullptr, nullptr);
  return bytes;
}

void select_keys(Context& ctx, KeyBatch batch, const uint8_t* wanted, KeySelection selection, std::byte* scratch) {
  enqueue(ctx, "select_keys", [=](Context& now) {
    size_t bytes = select_keys_bytes(batch.key_capacity);
    select_positions(hctr::cuda::stream_of(now.stream()), scratch, bytes, wanted, batch.key_capacity,
                     selection.positions, selection.offsets + batch.slots);
  });
  launch(ctx, "fill_selection", grid_for(std::max(batch.key_capacity, batch.slots)), fill_selection_kernel, batch,
         selection);
}

void admit_keys(Context& ctx, KeyBatch batch, KeySelection unknown, const int32_t* candidates, AdmissionRule rule,
                const GateState* gate, uint8_t* wanted) {
  launch(ctx, "admit_keys", grid_for(batch.key_capacity), admit_keys_kernel, batch, unknown, candidates, rule, gate,
         ctx.state(), wanted);
}

void forget_admitted(Context& ctx, KeyBatch unknown, const int32_t* candidates, const uint8_t* wanted,
                     uint32_t* occurrences) {
  launch(ctx, "forget_admitted", grid_for(unknown.key_capacity), forget_admitted_kernel, unknown, candidates, wanted,
         occurrences);
}

void hand_out_rows(Context& ctx, KeyBatch unknown, const int32_t* positions, const int32_t* found, GateState* gate,
                   int32_t* rows) {
  launch(ctx, "hand_out_rows", grid_for(unknown.key_capacity), hand_out_rows_kernel, unknown, positions, found, gate,
         rows);
}

void share_row(Context& ctx, KeyBatch batch, const GateState* gate, int32_t* rows) {
  launch(ctx, "share_row", grid_for(batch.key_capacity), share_row_kernel, batch, gate, rows);
}

}  // namespace cuda
}  // namespace hctr::ops
