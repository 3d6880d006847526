// The all-to-all of keys: splits a batch into one message per owner, and merges the messages that an owner receives
// from all ranks into one batch.
#pragma once

#include "core/device/op.h"
#include "ops/embedding/key_batch.h"

namespace hctr::ops {

/// The owner of a key in a slot that is sharded by key over `ranks` ranks: key modulo ranks, not negative.
HCTR_HD inline int32_t rank_of_key(int64_t key, int32_t ranks) {
  const int64_t remainder = key % ranks;  // negative for negative keys
  return static_cast<int32_t>(remainder < 0 ? remainder + ranks : remainder);
}

/// A column of a batch as one owner receives it: for each sample, those keys of the column's vector that belong to the
/// owner.
struct OwnedColumn {
  int32_t column;  // index of the column in the batch
  int32_t owner;
  int32_t spread_over;  // ranks that the keys are sharded over; 1: the owner has all keys

  HCTR_HD bool owns(int64_t key) const { return spread_over == 1 || rank_of_key(key, spread_over) == owner; }
};

/// The message to one owner. The message has the columns [first, first + count) of KeySplit::columns. `begin` and
/// `keys` are offsets in a buffer of all messages, in 64-bit words. The message has i32 offsets [count * samples + 1]
/// at `begin` and keys at `keys`. Bag (column, sample) has the keys offsets[column * samples + sample] up to the next
/// offset.
struct OwnerKeys {
  int32_t first, count;
  int64_t begin, keys;

  /// Index of (column c, sample b) in `present`, see split_keys().
  HCTR_HD int64_t present(int32_t c, int64_t b, int64_t samples) const {
    return first * samples + b * count + (c - first);
  }
  HCTR_HD static int64_t offset_words(int64_t columns, int64_t samples) { return (columns * samples + 2) / 2; }
};

/// How batches are split; fixed when the step is planned. All arrays are on one device.
struct KeySplit {
  int32_t ranks = 1;                     // number of owners; an owner may have no column
  int32_t count = 0;                     // number of columns
  const OwnedColumn* columns = nullptr;  // [count] sorted by owner, then in batch order
  const OwnerKeys* owners = nullptr;     // [ranks]
  const int32_t* local_rows = nullptr;   // [key_capacity] or null; a key with local_rows[p] != 0 is not sent
  int64_t* const* messages = nullptr;    // [ranks] output address of the message to each owner, on any device
  const uint32_t* aborted = nullptr;     // device memory; messages are not written if *aborted != 0; null: no check

  /// Whether key p of the batch is sent to the column's owner.
  HCTR_HD bool sends(const OwnedColumn& column, const KeyBatch& batch, int32_t p) const {
    return column.owns(batch.keys[p]) && !(local_rows && local_rows[p] != 0);
  }
};

/// Bytes of scratch for `bags` bags in all messages together, sent to `ranks` ranks.
size_t key_split_scratch_bytes(Device, int64_t bags, int32_t ranks);
namespace cpu {
size_t key_split_scratch_bytes(int64_t bags, int32_t ranks);
}
namespace cuda {
size_t key_split_scratch_bytes(int64_t bags, int32_t ranks);
}

/// Writes the messages to all owners; keys keep batch order. Memory after the last key of a message is not written.
/// `present` [count * samples]: 1 if the bag has keys in its message, else 0. `present` is ordered like received
/// vectors: message by message, each [samples, columns of the message]. Shapes: scratch key_split_scratch_bytes(count *
/// samples, ranks).
HCTR_OP(void split_keys(Context&, KeyBatch, KeySplit, uint8_t* present, std::byte* scratch))

/// Merges the messages that one owner received from `ranks` ranks into one batch of ranks * samples samples. Each
/// message has `words` words. The batch is slot-major; a column has the samples of rank 0 first, then of rank 1, and so
/// on. Shapes: messages i64 [ranks * words], offsets i32 [columns * ranks * samples + 1], keys i64 [at least the keys
/// of all messages].
struct MergeShape {
  int64_t ranks, columns, samples, words;
};
HCTR_OP(void merge_keys(Context&, MergeShape, Tensor messages, Tensor offsets, Tensor keys))

}  // namespace hctr::ops
