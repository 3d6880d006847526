// Kernels of the host-level key messages: one thread per bag, prefix sums by CUB; a hash table of first occurrences
// finds the distinct keys of a column.
#include <algorithm>
#include <bit>
#include <cub/block/block_reduce.cuh>

#include "core/device/launch.cuh"
#include "ops/embedding/host_keys.h"
#include "ops/embedding/host_keys_rules.h"
#include "ops/embedding/prefix_sum.cuh"

namespace hctr::ops {
namespace {

using hctr::cuda::Grid;
using hctr::cuda::grid_for;
using hctr::cuda::launch;
using hctr::cuda::thread_count;
using hctr::cuda::thread_index;
constexpr int32_t kFree = -1;
constexpr int kCheckThreads = 256, kCheckBlocks = 16;

/// Calls body(i) for each i in [0, count), in a grid-stride loop.
template <class Body>
__device__ void for_all(int64_t count, const Body& body) {
  for (int64_t i = thread_index(); i < count; i += thread_count()) body(i);
}

__global__ void fill_kernel(int32_t* values, int64_t count, int32_t value) {
  for_all(count, [&](int64_t i) { values[i] = value; });
}

/// Returns an occurrence from the table with the same key and column as p. With kInsert, p goes to a free slot, or
/// replaces a later occurrence. After all insertions, the table contains the first occurrence of each key, for any
/// thread order.
template <bool kInsert>
__device__ int32_t find_in_table(const HostMessages& all, const HostKeys& keys, int32_t column, int32_t p,
                                 int32_t* table, uint32_t mask) {
  const int64_t key = keys.keys[p];
  const int32_t begin = keys.offsets[column * all.bags], end = keys.offsets[(column + 1) * all.bags];
  for (uint32_t at = first_slot(key, column) & mask;; at = (at + 1) & mask) {
    int32_t seen = *static_cast<volatile int32_t*>(table + at);
    if (kInsert && seen == kFree) seen = atomicCAS(table + at, kFree, p);
    if (kInsert && seen == kFree) return p;
    if (seen < begin || seen >= end || keys.keys[seen] != key) continue;
    if (kInsert && seen > p) atomicMin(table + at, p);
    return seen;
  }
}

__global__ void insert_first_kernel(HostMessages all, HostKeys keys, int32_t* table, uint32_t mask) {
  for_all(all.all_bags(), [&](int64_t i) {
    const HostBag bag(all, keys, i);
    for (int32_t p = bag.begin; p < bag.end && all.column[bag.column].answered; ++p)
      find_in_table<true>(all, keys, bag.column, p, table, mask);
  });
}

/// Writes keys.first, and is_first[p] = 1 for first occurrences.
__global__ void find_first_kernel(HostMessages all, HostKeys keys, int32_t* table, uint32_t mask, int32_t* is_first,
                                  int64_t occurrences) {
  for_all(all.all_bags(), [&](int64_t i) {
    const HostBag bag(all, keys, i);
    for (int32_t p = bag.begin; p < bag.end; ++p) {
      const int32_t first =
          all.column[bag.column].answered ? find_in_table<false>(all, keys, bag.column, p, table, mask) : p;
      keys.first[p] = first;
      is_first[p] = first == p;
    }
    if (i == 0) is_first[occurrences] = 0;
  });
}

__global__ void bags_with_keys_kernel(HostMessages all, HostKeys keys) {
  for_all(all.all_bags() + 1,
          [&](int64_t i) { keys.bag_numbers[i] = i < all.all_bags() && keys.offsets[i + 1] > keys.offsets[i]; });
}

__global__ void plan_columns_kernel(HostMessages all, HostKeys keys, const int32_t* unique_before) {
  for_all(all.columns, [&](int64_t c) { plan_column(all, keys, unique_before, static_cast<int32_t>(c)); });
}

__global__ void message_sizes_kernel(HostMessages all, HostKeys keys) {
  for_all(all.messages, [&](int64_t m) { keys.sizes[m] = sizes_of(all, static_cast<int32_t>(m), keys.columns); });
}

__global__ void place_messages_kernel(HostMessages all, HostKeys keys) {
  for_all(all.messages, [&](int64_t m) { place_columns(all, static_cast<int32_t>(m), keys.sizes, keys.columns); });
}

__global__ void number_bags_kernel(HostMessages all, HostKeys keys, const int32_t* unique_before) {
  for_all(all.all_bags(), [&](int64_t i) { number_bag(all, keys, unique_before, i); });
}

__global__ void write_heads_kernel(HostMessages all, HostKeys keys, std::byte* words) {
  for_all(all.columns, [&](int64_t c) { write_head(all, keys, words, static_cast<int32_t>(c)); });
}

__global__ void write_bags_kernel(HostMessages all, HostKeys keys, std::byte* words) {
  for_all(all.all_bags(), [&](int64_t i) { write_bag(all, keys, words, i); });
}

__global__ void read_heads_kernel(HostMessages all, HostKeys keys, std::byte* words) {
  for_all(all.messages, [&](int64_t m) { read_heads(all, keys, words, static_cast<int32_t>(m)); });
}

/// Checks received columns, with kCheckBlocks blocks per column.
__global__ void check_columns_kernel(HostMessages all, HostKeys keys, const std::byte* words) {
  using Sums = cub::BlockReduce<int64_t, kCheckThreads>;
  __shared__ typename Sums::TempStorage memory;
  const auto c = static_cast<int32_t>(blockIdx.x / kCheckBlocks);
  const int64_t first = int64_t{blockIdx.x % kCheckBlocks} * kCheckThreads + threadIdx.x;
  const ColumnFindings mine = look_at_column(all, keys, words, c, first, int64_t{kCheckBlocks} * kCheckThreads);
  const int64_t found = Sums(memory).Sum(mine.keys);
  const bool good = __syncthreads_and(mine.good ? 1 : 0) != 0;
  const int64_t bags = Sums(memory).Sum(mine.bags);
  if (threadIdx.x != 0) return;
  HostColumnPlan& plan = keys.columns[c];
  atomicAdd(reinterpret_cast<unsigned long long*>(&plan.counted), static_cast<unsigned long long>(found));
  atomicAdd(&plan.bags, static_cast<int32_t>(bags));
  if (!good) keys.refused[all.column[c].message] = 1;
}

__global__ void finish_messages_kernel(HostMessages all, HostKeys keys) {
  for_all(all.messages, [&](int64_t m) { finish_message(all, keys, static_cast<int32_t>(m)); });
}

__global__ void read_lengths_kernel(HostMessages all, HostKeys keys, const std::byte* words) {
  for_all(all.all_bags() + 1,
          [&](int64_t i) { keys.offsets[i] = i < all.all_bags() ? length_of(all, keys, words, i) : 0; });
}

__global__ void read_places_kernel(HostMessages all, HostKeys keys, const std::byte* words) {
  for_all(all.all_bags(), [&](int64_t i) { read_places(all, keys, words, i); });
}

void number_bags(Context& ctx, const HostMessages& all, const HostKeys& keys, std::byte* rest) {
  const int64_t count = all.all_bags() + 1;
  launch(ctx, "bags_with_keys", grid_for(count), bags_with_keys_kernel, all, keys);
  cuda::prefix_sums(ctx, keys.bag_numbers, keys.bag_numbers, count, rest);
}

int64_t table_size(int64_t keys) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * keys + 1))); }

}  // namespace

namespace cuda {

size_t host_keys_scratch_bytes(int64_t bags, int64_t keys) {
  return padded_bytes(table_size(keys)) + padded_bytes(keys + 1) + prefix_sums_bytes(std::max(bags, keys) + 1);
}

void plan_host_keys(Context& ctx, HostMessages all, HostKeys keys, int64_t occurrences, std::byte* scratch) {
  const int64_t size = table_size(occurrences), bags = all.all_bags();
  auto *table = reinterpret_cast<int32_t*>(scratch),
       *unique_before = reinterpret_cast<int32_t*>(scratch + padded_bytes(size));
  std::byte* const rest = scratch + padded_bytes(size) + padded_bytes(occurrences + 1);
  const auto mask = static_cast<uint32_t>(size - 1);
  number_bags(ctx, all, keys, rest);
  launch(ctx, "clear_first", grid_for(size), fill_kernel, table, size, kFree);
  launch(ctx, "insert_first", grid_for(bags), insert_first_kernel, all, keys, table, mask);
  launch(ctx, "find_first", grid_for(bags), find_first_kernel, all, keys, table, mask, unique_before, occurrences);
  if (bags > 0) prefix_sums(ctx, unique_before, unique_before, occurrences + 1, rest);
  launch(ctx, "plan_columns", grid_for(all.columns, 64), plan_columns_kernel, all, keys, unique_before);
  launch(ctx, "message_sizes", grid_for(all.messages, 32), message_sizes_kernel, all, keys);
  launch(ctx, "place_messages", grid_for(all.messages, 32), place_messages_kernel, all, keys);
  launch(ctx, "number_bags", grid_for(bags), number_bags_kernel, all, keys, unique_before);
}

void write_host_keys(Context& ctx, HostMessages all, HostKeys keys, Tensor words) {
  launch(ctx, "write_heads", grid_for(all.columns, 64), write_heads_kernel, all, keys, words.bytes());
  launch(ctx, "write_bags", grid_for(all.all_bags()), write_bags_kernel, all, keys, words.bytes());
}

void read_host_keys(Context& ctx, HostMessages all, HostKeys keys, Tensor words, std::byte* scratch) {
  const int64_t bags = all.all_bags();
  launch(ctx, "read_heads", grid_for(all.messages, 32), read_heads_kernel, all, keys, words.bytes());
  launch(ctx, "check_columns", Grid{int64_t{all.columns} * kCheckBlocks, kCheckThreads, 0}, check_columns_kernel, all,
         keys, words.bytes());
  launch(ctx, "finish_messages", grid_for(all.messages, 32), finish_messages_kernel, all, keys);
  launch(ctx, "read_lengths", grid_for(bags + 1), read_lengths_kernel, all, keys, words.bytes());
  prefix_sums(ctx, keys.offsets, keys.offsets, bags + 1, scratch);
  number_bags(ctx, all, keys, scratch);
  launch(ctx, "read_places", grid_for(bags), read_places_kernel, all, keys, words.bytes());
}

}  // namespace cuda
}  // namespace hctr::ops
