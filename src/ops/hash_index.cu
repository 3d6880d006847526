#include <cooperative_groups.h>

#include <cuda/atomic>

#include "device/launch.cuh"
#include "ops/hash_index.h"

// Insertion by many threads at once.
//
// An empty place is claimed by exchanging its meta from 0 to (tag, kPending). The winner writes the key, takes a row
// and publishes (tag, row) with release; who reads a published meta with acquire therefore sees the key. Who meets a
// pending place of its own tag cannot know yet whether the key is its own, and looks at the same place again.
//
// Nobody waits for ever:
// - Between claim and publication the winner waits for nobody. It adds to the row counter together with lanes that have
//   claimed places too and stand at the same instruction; those are all between claim and publication themselves.
// - So who looks again waits for a thread that is running towards its publication. That also holds inside a warp: since
//   compute capability 7.0 a lane makes progress while others of its warp spin (7.5 is the least we run on).
// - Places are never emptied, and there are at least twice as many as rows and keys of one batch together, so a search
//   meets its key or an empty place.
// One key gets one place: all its searches visit the same places in the same order, and a place once claimed keeps its
// key, so none can pass the place the first one claimed.

namespace hctr::ops {
namespace {

constexpr uint32_t kPending = 0xffffffffu;

template <class T>
using DeviceAtomic = ::cuda::atomic_ref<T, ::cuda::thread_scope_device>;

__device__ uint32_t row_in(uint64_t meta) { return static_cast<uint32_t>(meta); }

/// The slot that key number `p` stands in: the last whose keys start at or before p.
__device__ int32_t slot_of(const KeyBatch& batch, int32_t p) {
  int64_t low = 0, high = batch.slots - 1;
  while (low < high) {
    const int64_t middle = (low + high + 1) / 2;
    if (batch.offsets[middle * batch.samples] <= p)
      low = middle;
    else
      high = middle - 1;
  }
  return static_cast<int32_t>(low);
}

/// The next row, or 0 when all are taken. Lanes that come together make one addition.
__device__ uint32_t take_row(IndexState* state) {
  const auto together = cooperative_groups::coalesced_threads();
  uint32_t before = 0;
  if (together.thread_rank() == 0) before = atomicAdd(&state->rows, static_cast<uint32_t>(together.size()));
  const uint32_t row = together.shfl(before, 0) + static_cast<uint32_t>(together.thread_rank()) + 1;
  return row <= state->row_capacity ? row : 0;
}

__device__ uint32_t find_or_insert(const HashIndex& index, uint64_t mask, int64_t key, int32_t slot) {
  const uint64_t tag = HashIndex::tag(slot);
  uint64_t at = HashIndex::hash(key, slot) & mask;
  for (uint64_t passed = 0; passed <= mask;) {
    IndexEntry& entry = index.entries[at];
    const DeviceAtomic<uint64_t> meta(entry.meta);
    const DeviceAtomic<int64_t> entry_key(entry.key);
    uint64_t seen = meta.load(::cuda::memory_order_acquire);
    if (seen == 0 && meta.compare_exchange_strong(seen, tag | kPending, ::cuda::memory_order_acquire,
                                                  ::cuda::memory_order_acquire)) {
      entry_key.store(key, ::cuda::memory_order_relaxed);
      const uint32_t row = take_row(index.state);
      if (row != 0) {
        index.row_keys[row] = key;
        if (index.row_slots) index.row_slots[row] = slot;
      }
      meta.store(tag | row, ::cuda::memory_order_release);
      return row;
    }
    if (seen >> 32 == tag >> 32) {
      if (row_in(seen) == kPending) continue;
      if (entry_key.load(::cuda::memory_order_relaxed) == key) return row_in(seen);
    }
    at = (at + 1) & mask;
    ++passed;
  }
  return 0;  // a full table: cannot be, by its size, and must not hang if it is
}

__global__ void index_insert_kernel(HashIndex index, KeyBatch batch, int32_t* rows) {
  const uint64_t mask = index.state->mask;
  const int64_t count = batch.size();
  for (int64_t p = hctr::cuda::thread_index(); p < batch.key_capacity; p += hctr::cuda::thread_count()) {
    uint32_t row = 0;
    if (p < count) {
      const int32_t slot = index.row_slots ? slot_of(batch, static_cast<int32_t>(p)) : 0;
      row = find_or_insert(index, mask, batch.keys[p], slot);
    }
    rows[p] = static_cast<int32_t>(row);
  }
}

/// Beside an insertion. A place that is pending, or whose row is newer than the last finished step, is as good as
/// another key's: if it holds this key, the key is new and not to be seen, and the search ends at an empty place.
__device__ uint32_t find(const HashIndex& index, uint64_t mask, uint32_t finished, int64_t key, int32_t slot) {
  const uint64_t tag = HashIndex::tag(slot);
  uint64_t at = HashIndex::hash(key, slot) & mask;
  for (uint64_t passed = 0; passed <= mask; ++passed, at = (at + 1) & mask) {
    IndexEntry& entry = index.entries[at];
    const uint64_t seen = DeviceAtomic<uint64_t>(entry.meta).load(::cuda::memory_order_acquire);
    if (seen == 0) return 0;
    if (seen >> 32 == tag >> 32 && row_in(seen) <= finished &&
        DeviceAtomic<int64_t>(entry.key).load(::cuda::memory_order_relaxed) == key)
      return row_in(seen);
  }
  return 0;
}

__global__ void index_find_kernel(HashIndex index, KeyBatch batch, int32_t* rows) {
  const uint64_t mask = index.state->mask;
  const uint32_t finished = index.state->finished;
  const int64_t count = batch.size();
  for (int64_t p = hctr::cuda::thread_index(); p < batch.key_capacity; p += hctr::cuda::thread_count()) {
    uint32_t row = 0;
    if (p < count) {
      const int32_t slot = index.row_slots ? slot_of(batch, static_cast<int32_t>(p)) : 0;
      row = find(index, mask, finished, batch.keys[p], slot);
    }
    rows[p] = static_cast<int32_t>(row);
  }
}

/// Identities of rows are distinct, so an empty place is all there is to look for.
__global__ void index_rebuild_kernel(HashIndex index) {
  const uint64_t mask = index.state->mask;
  const int64_t rows = min(index.state->rows, index.state->row_capacity);
  for (int64_t row = 1 + hctr::cuda::thread_index(); row <= rows; row += hctr::cuda::thread_count()) {
    const int64_t key = index.row_keys[row];
    const int32_t slot = index.row_slots ? index.row_slots[row] : 0;
    const uint64_t wanted = HashIndex::tag(slot) | static_cast<uint64_t>(row);
    uint64_t at = HashIndex::hash(key, slot) & mask;
    for (uint64_t empty = 0; !DeviceAtomic<uint64_t>(index.entries[at].meta)
                                  .compare_exchange_strong(empty, wanted, ::cuda::memory_order_relaxed);
         empty = 0)
      at = (at + 1) & mask;
    index.entries[at].key = key;
  }
}

__global__ void index_close_batch_kernel(HashIndex index, uint32_t* rows_after, volatile uint64_t* host_word) {
  IndexState& state = *index.state;
  const uint32_t rows = state.rows, batches = state.batches + 1;
  *rows_after = state.ready = min(rows, state.row_capacity);
  state.batches = batches;
  *host_word = static_cast<uint64_t>(batches) << 32 | rows;  // page-locked host memory has the same address here
  __threadfence_system();
}

__global__ void index_finish_step_kernel(HashIndex index, const uint32_t* rows_after) {
  index.state->finished = *rows_after;
}

}  // namespace

namespace cuda {

using hctr::cuda::grid_for;
using hctr::cuda::launch;

void index_insert(Context& ctx, HashIndex index, KeyBatch batch, int32_t* rows) {
  launch(ctx, "index_insert", grid_for(batch.key_capacity), index_insert_kernel, index, batch, rows);
}

void index_find(Context& ctx, HashIndex index, KeyBatch batch, int32_t* rows) {
  launch(ctx, "index_find", grid_for(batch.key_capacity), index_find_kernel, index, batch, rows);
}

void index_rebuild(Context& ctx, HashIndex index) {
  launch(ctx, "index_rebuild", {132 * 8, 256, 0}, index_rebuild_kernel, index);
}

void index_close_batch(Context& ctx, HashIndex index, uint32_t* rows_after, uint64_t* host_word) {
  launch(ctx, "index_close_batch", {1, 1, 0}, index_close_batch_kernel, index, rows_after, host_word);
}

void index_finish_step(Context& ctx, HashIndex index, const uint32_t* rows_after) {
  launch(ctx, "index_finish_step", {1, 1, 0}, index_finish_step_kernel, index, rows_after);
}

}  // namespace cuda
}  // namespace hctr::ops
