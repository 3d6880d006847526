// The all-to-all of keys: a batch is split into one message for each owner of rows, and the messages that an owner
// receives from all ranks are merged into one batch.
#pragma once

#include "core/device/op.h"
#include "ops/embedding/key_batch.h"

namespace hctr::ops {

/// The owner of a key of a slot that is sharded by key over `ranks` ranks: the least non-negative remainder.
HCTR_HD inline int32_t rank_of_key(int64_t key, int32_t ranks) {
  const int64_t remainder = key % ranks;  // negative for negative keys
  return static_cast<int32_t>(remainder < 0 ? remainder + ranks : remainder);
}

/// A column of a batch as one owner receives it: for each sample, those keys of the vector that the owner owns.
struct OwnedColumn {
  int32_t column;  // the vectors (column, sample) of the batch
  int32_t owner;
  int32_t spread_over;  // ranks that share these keys; 1: the owner has them all

  HCTR_HD bool owns(int64_t key) const { return spread_over == 1 || rank_of_key(key, spread_over) == owner; }
};

/// The message to one owner: its columns, [first, first + count) of all OwnedColumns, and its offset in a buffer of all
/// messages, in words of 64 bits. It holds i32 offsets [count * samples + 1] from `begin` on, and its keys from `keys`
/// on: those of bag (column, sample) from offsets[column * samples + sample] up to the next offset.
struct OwnerKeys {
  int32_t first, count;
  int64_t begin, keys;

  /// The index of column c and sample b in `present` (see split_keys).
  HCTR_HD int64_t present(int32_t c, int64_t b, int64_t samples) const {
    return first * samples + b * count + (c - first);
  }
  HCTR_HD static int64_t offset_words(int64_t columns, int64_t samples) { return (columns * samples + 2) / 2; }
};

/// How batches are split, fixed when the step is planned. All on one device.
struct KeySplit {
  int32_t ranks = 1;                     // owners; some may have no column
  int32_t count = 0;                     // number of columns
  const OwnedColumn* columns = nullptr;  // sorted by owner, then in the batch's order
  const OwnerKeys* owners = nullptr;     // [ranks]
  const int32_t* local_rows = nullptr;   // [key_capacity] or null; a key with a row here (not 0) is not sent
  int64_t* const* messages = nullptr;    // [ranks] where split_keys writes the message to each owner, on any device
  const uint32_t* aborted = nullptr;     // nothing is written to messages once it is not 0; null: always

  /// Whether key p of the batch is sent to the owner of the column.
  HCTR_HD bool sends(const OwnedColumn& column, const KeyBatch& batch, int32_t p) const {
    return column.owns(batch.keys[p]) && !(local_rows && local_rows[p] != 0);
  }
};

/// Bytes of scratch for this many bags in all messages together, sent to this many ranks.
size_t key_split_scratch_bytes(Device, int64_t bags, int32_t ranks);
namespace cpu {
size_t key_split_scratch_bytes(int64_t bags, int32_t ranks);
}
namespace cuda {
size_t key_split_scratch_bytes(int64_t bags, int32_t ranks);
}

/// Writes the messages to all owners; keys stay in the order of the batch. Memory after the last key of a message is
/// not written. `present` [count * samples]: 1 if the bag of a message has keys, else 0, in the order in which vectors
/// are received: message by message, each as [samples, its columns]. Shapes: scratch key_split_scratch_bytes(count *
/// samples, ranks).
HCTR_OP(void split_keys(Context&, KeyBatch, KeySplit, uint8_t* present, std::byte* scratch))

/// Merges the messages that one owner received, one from each of `ranks` ranks and of `words` words each, into one
/// batch of ranks * samples samples: slot-major, and in a column the samples of rank 0, then those of rank 1, and so
/// on. Shapes: messages i64 [ranks * words], offsets i32 [columns * ranks * samples + 1], keys i64 [at least the keys
/// of all messages].
struct MergeShape {
  int64_t ranks, columns, samples, words;
};
HCTR_OP(void merge_keys(Context&, MergeShape, Tensor messages, Tensor offsets, Tensor keys))

}  // namespace hctr::ops
