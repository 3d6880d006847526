// Hash index kernels: one thread per key. A block assigns its new rows with one atomic addition to the shared counter.
#include <cuda/atomic>

#include "core/device/launch.cuh"
#include "ops/common/reduce.cuh"
#include "ops/embedding/hash_index_protocol.h"

namespace hctr::ops {
namespace {

using hctr::cuda::BlockRange;

/// Atomic entry access: 16-byte loads and stores of both words, and a compare-and-swap of `meta`.
struct DeviceAccess {
  __device__ static IndexEntry load(const IndexEntry& entry) {
    IndexEntry seen;
    asm volatile("{ .reg .b128 both; ld.relaxed.gpu.global.b128 both, [%2]; mov.b128 {%0, %1}, both; }"
                 : "=l"(seen.key), "=l"(seen.meta)
                 : "l"(&entry)
                 : "memory");
    return seen;
  }
  __device__ static bool claim(IndexEntry& entry, uint64_t from, uint64_t meta) {
    return ::cuda::atomic_ref<uint64_t, ::cuda::thread_scope_device>(entry.meta)
        .compare_exchange_strong(from, meta, ::cuda::memory_order_relaxed);
  }
  __device__ static void store(IndexEntry& entry, int64_t key, uint64_t meta) {
    asm volatile("{ .reg .b128 both; mov.b128 both, {%1, %2}; st.relaxed.gpu.global.b128 [%0], both; }" ::"l"(&entry),
                 "l"(key), "l"(meta)
                 : "memory");
  }
};

constexpr int kProbeThreads =
    128;  // block size of inserts: small for short waits at barriers, large enough to share one atomic addition

/// Assigns the next row to each thread of a block that requests one; returns 0 if no row is left. Call from all threads
/// of the block.
__device__ uint32_t take_row(IndexState* state, bool wanted) {
  __shared__ uint32_t before[kProbeThreads / 32 + 1];
  if (!__syncthreads_or(wanted)) return 0;
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32, wanting = __ballot_sync(0xffffffffu, wanted);
  if (lane == 0) before[warp + 1] = static_cast<uint32_t>(__popc(wanting));
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 2; w <= kProbeThreads / 32; ++w) before[w] += before[w - 1];
    before[0] = atomicAdd(&state->rows, before[kProbeThreads / 32]);
  }
  __syncthreads();
  const uint32_t row =
      before[0] + (warp > 0 ? before[warp] : 0) + static_cast<uint32_t>(__popc(wanting & ((1u << lane) - 1))) + 1;
  return row <= state->row_capacity ? row : 0;
}

/// Key p of the batch and its slot, if p is below the number of keys. The key is loaded before the number of keys is
/// known, so that the loads of both run concurrently. This is safe, because `keys` is allocated up to the capacity.
struct BatchKey {
  int64_t key = 0;
  int32_t slot = 0;
  bool here = false;

  __device__ BatchKey(const HashIndex& index, const KeyBatch& batch, int64_t p) {
    if (p >= batch.key_capacity) return;
    key = batch.keys[p];
    here = p < batch.size();
    if (here && index.row_slots) slot = batch.slot_of(static_cast<int32_t>(p));
  }
};

/// A small batch is bound by memory latency, not bandwidth, so reading several entries together costs little and halves
/// the latency.
constexpr AtOnce at_once(bool is_short) { return is_short ? kFewestWaits : kFewestBytes; }
bool is_short(const KeyBatch& batch) { return batch.key_capacity <= 1 << 18; }

template <bool kIsShort>
__device__ void insert_keys(BlockRange range, HashIndex index, KeyBatch batch, int32_t* rows) {
  const int64_t whole_blocks = (batch.key_capacity + kProbeThreads - 1) / kProbeThreads * kProbeThreads;
  for (int64_t p = range.thread_index(); p < whole_blocks; p += range.thread_count()) {
    const BatchKey mine(index, batch, p);
    IndexSearch found;
    if (mine.here)
      found = find_or_claim<DeviceAccess, at_once(kIsShort)>(index.entries, index.state->mask, mine.key, mine.slot);
    const uint32_t fresh = take_row(index.state, found.claimed);
    if (found.claimed) {
      found.row = fresh;
      if (fresh != 0) {
        index.row_keys[fresh] = mine.key;
        if (index.row_slots) index.row_slots[fresh] = mine.slot;
      }
      publish_row<DeviceAccess>(*found.entry, mine.key, mine.slot, fresh);
    }
    // At this barrier, the whole block has published its rows; only then may its threads wait for rows. After the
    // barrier, `before` may be reused.
    __syncthreads();
    if (found.row == kNoRowYet) found.row = wait_for_row<DeviceAccess>(*found.entry);
    if (p < batch.key_capacity) rows[p] = static_cast<int32_t>(found.row);
  }
}

template <bool kIsShort>
__device__ void find_keys(BlockRange range, HashIndex index, KeyBatch batch, int32_t* rows) {
  const int64_t whole_warps = (batch.key_capacity + 31) / 32 * 32;
  for (int64_t p = range.thread_index(); p < whole_warps; p += range.thread_count()) {
    const BatchKey mine(index, batch, p);
    uint32_t row = 0;
    if (mine.here)
      row = find_row<DeviceAccess, at_once(kIsShort)>(index.entries, index.state->mask, index.state->finished, mine.key,
                                                      mine.slot);
    __syncwarp();  // reconverges the warp, so that its lanes store adjacent elements together
    if (p < batch.key_capacity) rows[p] = static_cast<int32_t>(row);
  }
}

/// Row identities are distinct, so each search only needs an empty entry.
__global__ void index_rebuild_kernel(HashIndex index, const uint8_t* left) {
  const uint64_t mask = index.state->mask;
  const int64_t rows = min(index.state->rows, index.state->row_capacity);
  for (int64_t row = index.first_row + hctr::cuda::thread_index(); row <= rows; row += hctr::cuda::thread_count()) {
    if (left && left[row] != 0) continue;
    const int64_t key = index.row_keys[row];
    const int32_t slot = index.row_slots ? index.row_slots[row] : 0;
    enter<DeviceAccess>(index.entries, mask, key, slot, static_cast<uint32_t>(row));
  }
}

__global__ void index_renumber_kernel(HashIndex index, const int32_t* rows, int64_t count) {
  for (int64_t i = hctr::cuda::thread_index(); i < count; i += hctr::cuda::thread_count())
    renumber<DeviceAccess>(index, static_cast<uint32_t>(rows[i]));
}

/// Adds the counts of a warp's threads to state->marks with one atomic addition.
__device__ void add_marks(IndexState* state, uint32_t mine) {
  const uint32_t of_warp = cuda::warp_sum(mine);
  if (threadIdx.x % 32 == 0 && of_warp != 0) atomicAdd(&state->marks, of_warp);
}

__global__ void index_remove_kernel(HashIndex index, const int32_t* rows, int64_t count) {
  uint32_t marks = 0;
  for (int64_t i = hctr::cuda::thread_index(); i < count; i += hctr::cuda::thread_count()) {
    const int32_t row = rows[i];
    marks += leave_mark<DeviceAccess>(index.entries, index.state->mask, index.row_keys[row],
                                      index.row_slots ? index.row_slots[row] : 0);
  }
  add_marks(index.state, marks);
}

__global__ void index_enter_kernel(HashIndex index, const int32_t* rows, int64_t count) {
  uint32_t marks = 0;
  for (int64_t i = hctr::cuda::thread_index(); i < count; i += hctr::cuda::thread_count()) {
    const int32_t row = rows[i];
    marks -= enter_absent<DeviceAccess>(index.entries, index.state->mask, index.row_keys[row],
                                        index.row_slots ? index.row_slots[row] : 0, static_cast<uint32_t>(row));
  }
  add_marks(index.state, marks);  // `marks` wraps modulo 2^32, so this subtracts
}

__device__ void close_batch(BlockRange, HashIndex index, uint32_t* rows_after, uint64_t* host_word) {
  IndexState& state = *index.state;
  const uint32_t rows = state.rows, batches = state.batches + 1;
  *rows_after = state.ready = min(rows, state.row_capacity);
  state.batches = batches;
  // host_word is page-locked host memory, which has the same address on the device
  *static_cast<volatile uint64_t*>(host_word) = static_cast<uint64_t>(batches) << 32 | rows;
  __threadfence_system();
}

__global__ void index_add_rows_kernel(HashIndex index, uint32_t count) {
  index.state->ready = index.state->rows += count;
}

__global__ void index_finish_rows_kernel(HashIndex index, uint32_t rows) { index.state->finished = rows; }

__device__ void finish_step(BlockRange, HashIndex index, const uint32_t* rows_after) {
  index.state->finished = *rows_after;
}

}  // namespace

namespace cuda {

using hctr::cuda::grid_for;
using hctr::cuda::launch;
using hctr::cuda::launch_lockstep;

void index_insert(Context& ctx, HashIndex index, KeyBatch batch, int32_t* rows) {
  const int64_t blocks = grid_for(batch.key_capacity, kProbeThreads, hctr::cuda::blocks_of_device(64)).blocks;
  if (is_short(batch))
    launch_lockstep<insert_keys<true>, kProbeThreads>(ctx, "index_insert", blocks, index, batch, rows);
  else
    launch_lockstep<insert_keys<false>, kProbeThreads>(ctx, "index_insert", blocks, index, batch, rows);
}

void index_find(Context& ctx, HashIndex index, KeyBatch batch, int32_t* rows) {
  const int64_t blocks = grid_for(batch.key_capacity).blocks;
  if (is_short(batch))
    launch_lockstep<find_keys<true>, 256>(ctx, "index_find", blocks, index, batch, rows);
  else
    launch_lockstep<find_keys<false>, 256>(ctx, "index_find", blocks, index, batch, rows);
}

void index_rebuild(Context& ctx, HashIndex index, const uint8_t* left) {
  launch(ctx, "index_rebuild", {hctr::cuda::blocks_of_device(8), 256, 0}, index_rebuild_kernel, index, left);
}

void index_renumber(Context& ctx, HashIndex index, const int32_t* rows, int64_t count) {
  launch(ctx, "index_renumber", grid_for(count), index_renumber_kernel, index, rows, count);
}

void index_remove(Context& ctx, HashIndex index, const int32_t* rows, int64_t count) {
  launch(ctx, "index_remove", grid_for(count), index_remove_kernel, index, rows, count);
}

void index_enter(Context& ctx, HashIndex index, const int32_t* rows, int64_t count) {
  launch(ctx, "index_enter", grid_for(count), index_enter_kernel, index, rows, count);
}

void index_close_batch(Context& ctx, HashIndex index, uint32_t* rows_after, uint64_t* host_word) {
  launch_lockstep<close_batch, 1>(ctx, "index_close_batch", 1, index, rows_after, host_word);
}

void index_add_rows(Context& ctx, HashIndex index, uint32_t count) {
  launch(ctx, "index_add_rows", {1, 1, 0}, index_add_rows_kernel, index, count);
}

void index_finish_rows(Context& ctx, HashIndex index, uint32_t rows) {
  launch(ctx, "index_finish_rows", {1, 1, 0}, index_finish_rows_kernel, index, rows);
}

void index_finish_step(Context& ctx, HashIndex index, const uint32_t* rows_after) {
  launch_lockstep<finish_step, 1>(ctx, "index_finish_step", 1, index, rows_after);
}

}  // namespace cuda
}  // namespace hctr::ops
