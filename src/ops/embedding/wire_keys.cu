// Kernels that pack and merge keys, with one thread per bag: bag lengths, their prefix sums by CUB, then the copy of
// each key to its position.
#include "core/device/launch.cuh"
#include "ops/embedding/prefix_sum.cuh"
#include "ops/embedding/wire_keys.h"

namespace hctr::ops {
namespace {

using hctr::cuda::grid_for;
using hctr::cuda::launch;
using hctr::cuda::thread_count;
using hctr::cuda::thread_index;

__global__ void packed_lengths_kernel(KeyBatch batch, KeySplit split, int32_t* lengths, int32_t* some,
                                      uint8_t* present) {
  const auto samples = static_cast<uint32_t>(batch.samples);
  const int64_t bags = split.count * batch.samples;
  for (int64_t i = thread_index(); i <= bags; i += thread_count()) {
    int32_t length = 0;
    if (i < bags) {
      const auto c = static_cast<uint32_t>(i) / samples, b = static_cast<uint32_t>(i) - c * samples;
      const OwnedColumn column = split.columns[c];
      const KeyRange range = batch.keys_of(static_cast<int64_t>(column.column) * samples + b);
      for (int32_t p = range.begin; p < range.end; ++p) length += split.sends(column, batch, p);
      present[split.owners[column.owner].present(static_cast<int32_t>(c), b, samples)] = length > 0;
    }
    lengths[i] = length;
    some[i] = length > 0;
  }
}

__global__ void pack_keys_kernel(KeyBatch batch, KeySplit split, const int32_t* sums, const int32_t* listed,
                                 WireKeys packed, int32_t* vectors) {
  const auto samples = static_cast<uint32_t>(batch.samples);
  const int64_t bags = split.count * batch.samples;
  for (int64_t i = thread_index(); i < bags; i += thread_count()) {
    int32_t at = sums[i];
    if (at == sums[i + 1]) continue;
    const auto c = static_cast<uint32_t>(i) / samples, b = static_cast<uint32_t>(i) - c * samples;
    const OwnedColumn column = split.columns[c];
    const OwnerKeys owner = split.owners[column.owner];
    vectors[listed[i]] = static_cast<int32_t>(owner.present(static_cast<int32_t>(c), b, samples));
    const KeyRange range = batch.keys_of(static_cast<int64_t>(column.column) * samples + b);
    for (int32_t p = range.begin; p < range.end; ++p) {
      if (!split.sends(column, batch, p)) continue;
      packed.keys[at] = batch.keys[p];
      packed.bags[at++] = static_cast<int32_t>(i);
    }
  }
}

__global__ void packed_counts_kernel(KeySplit split, int64_t samples, const int32_t* sums, const int32_t* listed,
                                     int32_t* counts) {
  for (int64_t r = thread_index(); r < split.ranks; r += thread_count()) {
    const OwnerKeys owner = split.owners[r];
    const int64_t begin = owner.first * samples, end = begin + owner.count * samples;
    counts[2 * r] = sums[end] - sums[begin];
    counts[2 * r + 1] = listed[end] - listed[begin];
  }
}

/// Returns the first i in [begin, end) with bags[i] >= bag, or `end` if there is none. `bags` is ascending.
__device__ int32_t first_of_bag(const int32_t* bags, int32_t begin, int32_t end, int32_t bag) {
  while (begin < end) {
    const int32_t middle = begin + (end - begin) / 2;
    if (bags[middle] < bag)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

/// The bag with index i among the bags of all messages, ordered by rank, then by column, then by sample.
struct ReceivedBag {
  int32_t rank, bag;
  // merged: bag number in the merged batch; vector: index of the bag's vector in [ranks * samples, columns]
  int64_t merged, vector;

  __device__ ReceivedBag(const MergeShape& shape, int64_t i) {
    const auto samples = static_cast<uint32_t>(shape.samples), of_rank = static_cast<uint32_t>(shape.columns) * samples;
    rank = static_cast<int32_t>(static_cast<uint32_t>(i) / of_rank);
    bag = static_cast<int32_t>(static_cast<uint32_t>(i) - static_cast<uint32_t>(rank) * of_rank);
    const uint32_t c = static_cast<uint32_t>(bag) / samples, b = static_cast<uint32_t>(bag) - c * samples;
    const int64_t sample = int64_t{rank} * samples + b;
    merged = c * shape.ranks * samples + sample;
    vector = sample * shape.columns + c;
  }
};

__global__ void received_lengths_kernel(MergeShape shape, const int32_t* bags, const int32_t* first, int32_t first_bag,
                                        int32_t* lengths, int32_t* some, int32_t* begins) {
  const int64_t all = shape.columns * shape.ranks * shape.samples;
  for (int64_t i = thread_index(); i <= all; i += thread_count()) {
    if (i == all) {
      lengths[i] = some[i] = 0;
      continue;
    }
    const ReceivedBag at(shape, i);
    const int32_t bag = first_bag + at.bag;
    const int32_t end = first[at.rank + 1], begin = first_of_bag(bags, first[at.rank], end, bag);
    int32_t next = begin;
    while (next < end && bags[next] == bag) ++next;
    lengths[at.merged] = next - begin;
    some[i] = next > begin;
    begins[i] = begin;
  }
}

__global__ void merge_packed_kernel(MergeShape shape, const int64_t* from, const int32_t* offsets,
                                    const int32_t* listed, const int32_t* begins, int64_t* keys, int32_t* vectors) {
  const int64_t all = shape.columns * shape.ranks * shape.samples;
  for (int64_t i = thread_index(); i < all; i += thread_count()) {
    if (listed[i] == listed[i + 1]) continue;
    const ReceivedBag at(shape, i);
    vectors[listed[i]] = static_cast<int32_t>(at.vector);
    const int32_t begin = offsets[at.merged], end = offsets[at.merged + 1];
    for (int32_t p = begin; p < end; ++p) keys[p] = from[begins[i] + p - begin];
  }
}

}  // namespace

namespace cuda {

size_t packed_keys_scratch_bytes(int64_t bags) { return 3 * padded_bytes(bags + 1) + prefix_sums_bytes(bags + 1); }

void pack_keys(Context& ctx, KeyBatch batch, KeySplit split, WireKeys packed, uint8_t* present, int32_t* vectors,
               Tensor counts, std::byte* scratch) {
  const int64_t bags = split.count * batch.samples;
  const size_t column = padded_bytes(bags + 1);
  auto *sums = reinterpret_cast<int32_t*>(scratch), *listed = reinterpret_cast<int32_t*>(scratch + column);
  std::byte* const rest = scratch + 3 * column;
  launch(ctx, "packed_lengths", grid_for(bags + 1), packed_lengths_kernel, batch, split, sums, listed, present);
  prefix_sums(ctx, sums, sums, bags + 1, rest);
  prefix_sums(ctx, listed, listed, bags + 1, rest);
  launch(ctx, "pack_keys", grid_for(bags), pack_keys_kernel, batch, split, sums, listed, packed, vectors);
  launch(ctx, "packed_counts", grid_for(split.ranks), packed_counts_kernel, split, batch.samples, sums, listed,
         counts.data<int32_t>());
}

void merge_packed_keys(Context& ctx, MergeShape shape, WireKeys received, const int32_t* first, int32_t first_bag,
                       Tensor offsets, Tensor keys, int32_t* vectors, std::byte* scratch) {
  const int64_t bags = shape.columns * shape.ranks * shape.samples;
  const size_t column = padded_bytes(bags + 1);
  auto *listed = reinterpret_cast<int32_t*>(scratch), *begins = reinterpret_cast<int32_t*>(scratch + column);
  auto* sums = offsets.data<int32_t>();
  std::byte* const rest = scratch + 3 * column;
  launch(ctx, "received_lengths", grid_for(bags + 1), received_lengths_kernel, shape, received.bags, first, first_bag,
         sums, listed, begins);
  prefix_sums(ctx, sums, sums, bags + 1, rest);
  prefix_sums(ctx, listed, listed, bags + 1, rest);
  launch(ctx, "merge_packed_keys", grid_for(bags), merge_packed_kernel, shape, received.keys, sums, listed, begins,
         keys.data<int64_t>(), vectors);
}

}  // namespace cuda
}  // namespace hctr::ops
