// Lengths of bags, their prefix sum by CUB, then each key to its position: one thread for each bag.
#include "device/launch.cuh"
#include "ops/embedding/key_split.h"
#include "ops/embedding/prefix_sum.cuh"

namespace hctr::ops {
namespace {

using hctr::cuda::grid_for;
using hctr::cuda::launch;
using hctr::cuda::thread_count;
using hctr::cuda::thread_index;

__global__ void split_lengths_kernel(KeyBatch batch, KeySplit split, int32_t* lengths, uint8_t* present) {
  const auto samples = static_cast<uint32_t>(batch.samples);
  const int64_t bags = split.count * batch.samples;
  for (int64_t i = thread_index(); i <= bags; i += thread_count()) {
    int32_t length = 0;
    if (i < bags) {
      const auto c = static_cast<uint32_t>(i) / samples, b = static_cast<uint32_t>(i) - c * samples;
      const OwnedColumn column = split.columns[c];
      const KeyRange range = batch.keys_of(column.column * batch.samples + b);
      for (int32_t p = range.begin; p < range.end; ++p) length += split.sends(column, batch, p);
      present[split.owners[column.owner].present(static_cast<int32_t>(c), b, samples)] = length > 0;
    }
    lengths[i] = length;
  }
}

__global__ void split_keys_kernel(KeyBatch batch, KeySplit split, const int32_t* sums, int64_t* words) {
  const auto samples = static_cast<uint32_t>(batch.samples);
  const int64_t bags = split.count * batch.samples;
  for (int64_t i = thread_index(); i < bags; i += thread_count()) {
    const auto c = static_cast<uint32_t>(i) / samples, b = static_cast<uint32_t>(i) - c * samples;
    const OwnedColumn column = split.columns[c];
    const OwnerKeys owner = split.owners[column.owner];
    const int64_t first = owner.first * batch.samples;
    int32_t at = sums[i] - sums[first];
    auto* offsets = reinterpret_cast<int32_t*>(words + owner.begin);
    offsets[i - first] = at;
    if (i + 1 == first + owner.count * batch.samples) offsets[i + 1 - first] = sums[i + 1] - sums[first];
    const KeyRange range = batch.keys_of(static_cast<int64_t>(column.column) * samples + b);
    for (int32_t p = range.begin; p < range.end; ++p)
      if (split.sends(column, batch, p)) words[owner.keys + at++] = batch.keys[p];
  }
}

/// Where bag i of the merged batch comes from: its offsets in the message of its rank.
struct Origin {
  const int64_t* message;
  const int32_t* offset;

  __device__ Origin(const MergeShape& shape, const int64_t* messages, int64_t i) {
    const auto samples = static_cast<uint32_t>(shape.samples), all = static_cast<uint32_t>(shape.ranks) * samples;
    const uint32_t column = static_cast<uint32_t>(i) / all, sample = static_cast<uint32_t>(i) - column * all;
    const uint32_t rank = sample / samples;
    message = messages + rank * shape.words;
    offset = reinterpret_cast<const int32_t*>(message) + column * shape.samples + (sample - rank * samples);
  }
};

__global__ void merge_lengths_kernel(MergeShape shape, const int64_t* messages, int32_t* lengths) {
  const int64_t bags = shape.columns * shape.ranks * shape.samples;
  for (int64_t i = thread_index(); i <= bags; i += thread_count()) {
    int32_t length = 0;
    if (i < bags) {
      const Origin origin(shape, messages, i);
      length = origin.offset[1] - origin.offset[0];
    }
    lengths[i] = length;
  }
}

__global__ void merge_keys_kernel(MergeShape shape, const int64_t* messages, int64_t offset_words,
                                  const int32_t* offsets, int64_t* keys) {
  const int64_t bags = shape.columns * shape.ranks * shape.samples;
  for (int64_t i = thread_index(); i < bags; i += thread_count()) {
    const Origin origin(shape, messages, i);
    const int64_t* from = origin.message + offset_words + origin.offset[0];
    const int32_t begin = offsets[i], end = offsets[i + 1];
    for (int32_t p = begin; p < end; ++p) keys[p] = from[p - begin];
  }
}

}  // namespace

namespace cuda {

size_t key_split_scratch_bytes(int64_t bags) { return padded_bytes(bags + 1) + prefix_sums_bytes(bags + 1); }

void split_keys(Context& ctx, KeyBatch batch, KeySplit split, Tensor messages, uint8_t* present, std::byte* scratch) {
  const int64_t bags = split.count * batch.samples;
  auto* lengths = reinterpret_cast<int32_t*>(scratch);
  int64_t* words = messages.data<int64_t>();
  launch(ctx, "split_lengths", grid_for(bags + 1), split_lengths_kernel, batch, split, lengths, present);
  prefix_sums(ctx, lengths, lengths, bags + 1, scratch + padded_bytes(bags + 1));
  launch(ctx, "split_keys", grid_for(bags), split_keys_kernel, batch, split, lengths, words);
}

void merge_keys(Context& ctx, MergeShape shape, Tensor messages, Tensor offsets, Tensor keys, std::byte* scratch) {
  const int64_t bags = shape.columns * shape.ranks * shape.samples;
  auto* sums = offsets.data<int32_t>();
  const auto* from = messages.data<const int64_t>();
  launch(ctx, "merge_lengths", grid_for(bags + 1), merge_lengths_kernel, shape, from, sums);
  prefix_sums(ctx, sums, sums, bags + 1, scratch);
  launch(ctx, "merge_keys", grid_for(bags), merge_keys_kernel, shape, from,
         OwnerKeys::offset_words(shape.columns, shape.samples), sums, keys.data<int64_t>());
}

}  // namespace cuda
}  // namespace hctr::ops
