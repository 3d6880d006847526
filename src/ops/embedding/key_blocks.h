// Keys on their way to the ranks that own them: those of a batch in one block for each owner, and the blocks of all
// ranks as one batch.
#pragma once

#include "device/op.h"
#include "ops/embedding/key_batch.h"

namespace hctr::ops {

/// The owner of a key among `ranks` ranks that the keys of a slot are spread over: the least non-negative remainder.
HCTR_HD inline int32_t rank_of_key(int64_t key, int32_t ranks) {
  const int64_t remainder = key % ranks;  // negative for negative keys
  return static_cast<int32_t>(remainder < 0 ? remainder + ranks : remainder);
}

/// A column of a batch as one owner gets it: for each sample, those keys of one of the batch's vectors that the owner
/// has.
struct BlockColumn {
  int32_t column;  // the vectors (column, sample) of the batch
  int32_t owner;
  int32_t spread_over;  // ranks that share these keys; 1: the owner has them all

  HCTR_HD bool takes(int64_t key) const { return spread_over == 1 || rank_of_key(key, spread_over) == owner; }
};

/// What goes to one owner: its columns, [first, first + count) of all BlockColumns, and where their block lies in the
/// memory sent, in words of 64 bits. A block holds i32 offsets [count * samples + 1] from `begin` on, and from `keys`
/// on its keys: those of bag (column, sample) from offsets[column * samples + sample] up to the next.
struct OwnerBlock {
  int32_t first, count;
  int64_t begin, keys;

  /// Which of all `present` block column c and sample b have.
  HCTR_HD int64_t present(int32_t c, int64_t b, int64_t samples) const {
    return first * samples + b * count + (c - first);
  }
  static int64_t offset_words(int64_t columns, int64_t samples) { return (columns * samples + 2) / 2; }
};

/// How batches are split up, fixed when a step is planned. All on one device.
struct KeyBlocks {
  int32_t ranks = 1;                     // owners there are; some may have no column
  int32_t count = 0;                     // of columns
  const BlockColumn* columns = nullptr;  // by owner, then as in the batch
  const OwnerBlock* owners = nullptr;    // [ranks]
  const int32_t* local_rows = nullptr;   // [key_capacity] where set, keys with a row here (not 0) go to nobody

  /// Whether key p of the batch goes to the owner of a column.
  HCTR_HD bool goes_to(const BlockColumn& column, const KeyBatch& batch, int32_t p) const {
    return column.takes(batch.keys[p]) && !(local_rows && local_rows[p] != 0);
  }
};

/// Bytes of scratch for batches of so many bags, those of all blocks together.
size_t key_blocks_scratch_bytes(Device, int64_t bags);
namespace cpu {
size_t key_blocks_scratch_bytes(int64_t bags);
}
namespace cuda {
size_t key_blocks_scratch_bytes(int64_t bags);
}

/// Writes the blocks of all owners to `blocks_out`; keys stay in the order of the batch. What lies behind a block's
/// last key is not defined. `present` [count * samples]: whether (1 or 0) a bag of a block has keys, in the order that
/// vectors come back in: block by block, and of each block [samples, its columns]. Shapes: blocks_out i64, flat;
/// scratch key_blocks_scratch_bytes(count * samples).
HCTR_OP(void split_keys(Context&, KeyBatch, KeyBlocks, Tensor blocks_out, uint8_t* present, std::byte* scratch))

/// The blocks that one owner got, one from each of `ranks` ranks and of `words` words each, as one batch of ranks *
/// samples samples: slot-major as any, and in a column the ranks' samples one behind the other. Shapes: blocks i64
/// [ranks * words], offsets i32 [columns * ranks * samples + 1], keys i64 [at least the keys of all blocks]; scratch
/// key_blocks_scratch_bytes(columns * ranks * samples).
struct BlockShape {
  int64_t ranks, columns, samples, words;
};
HCTR_OP(void merge_keys(Context&, BlockShape, Tensor blocks, Tensor offsets, Tensor keys, std::byte* scratch))

}  // namespace hctr::ops
