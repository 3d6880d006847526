// Kernels of the key split. Bags are processed in tiles. The first kernel counts the sent keys of each tile; the second
// kernel adds the counts of earlier tiles and writes the keys. The merge needs no sum over bags, because the position
// of a bag's keys follows from the offsets in the messages. Launches of several tables are merged into lockstep
// launches.
#include "core/device/launch.cuh"
#include "ops/embedding/key_split.h"
#include "ops/embedding/sort_digits.cuh"

namespace hctr::ops {
namespace {

using hctr::cuda::BlockRange;
using hctr::cuda::grid_for;
using hctr::cuda::launch_lockstep;

constexpr int kSplitThreads = 256, kSplitEach = 8;
constexpr int64_t kSplitTile = kSplitThreads * kSplitEach;  // bags per tile; a tile belongs to one message

HCTR_HD int64_t split_tiles(int64_t bags) { return (bags + kSplitTile - 1) / kSplitTile; }
/// An upper bound on the number of tiles of all messages.
int64_t most_split_tiles(int64_t bags, int32_t ranks) { return split_tiles(bags) + ranks; }

/// The tile of a block: its message and its index in the message.
struct SplitTileOf {
  int32_t rank = 0;    // the owner; equals split.ranks past the last tile
  int64_t before = 0;  // number of tiles in earlier messages
  int64_t tile = 0;    // tile index in this message
  OwnerKeys owner{};
  int64_t bags = 0;  // number of bags in this message

  __device__ SplitTileOf(const KeySplit& split, int64_t samples, int64_t block) {
    for (; rank < split.ranks; ++rank) {
      owner = split.owners[rank];
      bags = owner.count * samples;
      tile = block - before;
      if (tile < split_tiles(bags)) return;
      before += split_tiles(bags);
    }
  }
  /// Bag number, within the message, of this thread's j-th bag.
  __device__ int64_t bag(int j) const { return tile * kSplitTile + j * kSplitThreads + threadIdx.x; }
};

/// A bag of a message.
struct SplitBag {
  uint32_t column = 0, sample = 0;  // column: index in KeySplit::columns
  OwnedColumn from{};
  KeyRange range{};
  uint32_t sent = 0;  // number of keys that are sent

  SplitBag() = default;
  __device__ SplitBag(const KeyBatch& batch, const KeySplit& split, const OwnerKeys& owner, int64_t bag) {
    const auto samples = static_cast<uint32_t>(batch.samples), of_owner = static_cast<uint32_t>(bag) / samples;
    column = static_cast<uint32_t>(owner.first) + of_owner;
    sample = static_cast<uint32_t>(bag) - of_owner * samples;
    from = split.columns[column];
    range = batch.keys_of(from.column * batch.samples + sample);
    for (int32_t p = range.begin; p < range.end; ++p) sent += split.sends(from, batch, p) ? 1 : 0;
  }
};

/// Counts the sent keys of each tile. tile_keys: [tiles of all messages].
__device__ void count_split_keys(BlockRange range, KeyBatch batch, KeySplit split, int32_t* tile_keys) {
  __shared__ uint32_t of_warp[kSplitThreads / 32];
  const SplitTileOf at(split, batch.samples, range.block);
  if (at.rank == split.ranks) return;
  uint32_t count = 0;
#pragma unroll
  for (int j = 0; j < kSplitEach; ++j)
    if (at.bag(j) < at.bags) count += SplitBag(batch, split, at.owner, at.bag(j)).sent;
  const uint32_t all = sum_threads(of_warp, count).all;
  if (threadIdx.x == 0) tile_keys[range.block] = static_cast<int32_t>(all);
}

__device__ void write_split_keys(BlockRange range, KeyBatch batch, KeySplit split, const int32_t* tile_keys,
                                 uint8_t* present) {
  __shared__ uint32_t of_warp[2][kSplitThreads / 32];
  const SplitTileOf at(split, batch.samples, range.block);
  if (at.rank == split.ranks || (split.aborted && *split.aborted != 0)) return;
  uint32_t before = 0;
  for (int64_t t = threadIdx.x; t < at.tile; t += kSplitThreads)
    before += static_cast<uint32_t>(tile_keys[at.before + t]);
  uint32_t next = sum_threads(of_warp[1], before).all;

  int64_t* const message = split.messages[at.rank];
  auto* const offsets = reinterpret_cast<int32_t*>(message);
  int64_t* const keys = message + (at.owner.keys - at.owner.begin);
  // A thread processes every 256th bag, so that a warp stores adjacent words. This saves time if the stores go over a
  // link.
#pragma unroll
  for (int j = 0; j < kSplitEach; ++j) {
    const int64_t i = at.bag(j);
    const bool here = i < at.bags;
    const SplitBag bag = here ? SplitBag(batch, split, at.owner, i) : SplitBag{};
    const BlockSums sums = sum_threads(of_warp[j % 2], bag.sent);
    uint32_t to = next + sums.before;
    next += sums.all;
    if (!here) continue;
    offsets[i] = static_cast<int32_t>(to);
    if (i + 1 == at.bags) offsets[i + 1] = static_cast<int32_t>(to + bag.sent);
    present[at.owner.present(static_cast<int32_t>(bag.column), bag.sample, batch.samples)] = bag.sent > 0;
    for (int32_t p = bag.range.begin; p < bag.range.end; ++p)
      if (split.sends(bag.from, batch, p)) keys[to++] = batch.keys[p];
  }
}

/// Merges the messages. The keys of bag (column, rank, sample) begin at the number of keys before the bag in the merged
/// batch. These are: from lower ranks, all keys of this column and of earlier columns; from higher ranks, all keys of
/// earlier columns; from the same rank, all keys before the bag in the message.
__device__ void merge_messages(BlockRange range, MergeShape shape, const int64_t* messages, int32_t* offsets,
                               int64_t* keys) {
  const auto samples = static_cast<uint32_t>(shape.samples), all = static_cast<uint32_t>(shape.ranks) * samples;
  const int64_t bags = shape.columns * all, offset_words = OwnerKeys::offset_words(shape.columns, shape.samples);
  const auto offset_of = [&](int64_t rank, int64_t bag) -> const int32_t* {
    return reinterpret_cast<const int32_t*>(messages + rank * shape.words) + bag;
  };
  for (int64_t i = range.thread_index(); i <= bags; i += range.thread_count()) {
    int32_t begin = 0;
    if (i == bags) {
      for (int64_t r = 0; r < shape.ranks && bags > 0; ++r) begin += *offset_of(r, shape.columns * shape.samples);
      offsets[i] = begin;
      continue;
    }
    const uint32_t column = static_cast<uint32_t>(i) / all, of_column = static_cast<uint32_t>(i) - column * all;
    const uint32_t rank = of_column / samples;
    const int64_t first = column * shape.samples;  // first bag of the column in each message
    for (uint32_t r = 0; r < static_cast<uint32_t>(shape.ranks); ++r)
      if (r != rank) begin += *offset_of(r, r < rank ? first + shape.samples : first);
    const int32_t* const from = offset_of(rank, first + (of_column - rank * samples));
    const int32_t there = from[0], length = from[1] - there;
    const int64_t* const message_keys = messages + rank * shape.words + offset_words + there;
    begin += there;
    offsets[i] = begin;
    for (int32_t k = 0; k < length; ++k) keys[begin + k] = message_keys[k];
  }
}

}  // namespace

namespace cuda {

size_t key_split_scratch_bytes(int64_t bags, int32_t ranks) {
  return static_cast<size_t>(most_split_tiles(bags, ranks)) * sizeof(int32_t);
}

void split_keys(Context& ctx, KeyBatch batch, KeySplit split, uint8_t* present, std::byte* scratch) {
  const int64_t tiles = most_split_tiles(split.count * batch.samples, split.ranks);
  auto* const tile_keys = reinterpret_cast<int32_t*>(scratch);
  launch_lockstep<count_split_keys, kSplitThreads>(ctx, "count_split_keys", tiles, batch, split, tile_keys);
  launch_lockstep<write_split_keys, kSplitThreads>(ctx, "write_split_keys", tiles, batch, split, tile_keys, present);
}

void merge_keys(Context& ctx, MergeShape shape, Tensor messages, Tensor offsets, Tensor keys) {
  constexpr int kThreads = 256;
  const int64_t bags = shape.columns * shape.ranks * shape.samples;
  launch_lockstep<merge_messages, kThreads>(ctx, "merge_keys", grid_for(bags + 1, kThreads).blocks, shape,
                                            messages.data<const int64_t>(), offsets.data<int32_t>(),
                                            keys.data<int64_t>());
}

}  // namespace cuda
}  // namespace hctr::ops
