// Splits the keys of bags by the rank that owns the keys' rows. Bags may have any length, and sizes are known only with
// the batch.
#pragma once

#include "core/device/op.h"
#include "ops/embedding/key_split.h"

namespace hctr::ops {

/// The keys of `bags` bags, split by owner with rank_of_key(); with one rank, that rank owns all keys. All arrays are
/// on one device.
struct OwnerSplit {
  int32_t ranks = 1;
  int64_t bags = 0, most = 0;  // most: capacity in keys
  // [ranks * bags + 1] at index r * bags + b: the number of keys of bag b that rank r owns; the last element is 0
  int32_t* lengths = nullptr;
  int32_t* begin = nullptr;      // [ranks * bags + 1] offsets in `sent` of the keys that `lengths` counts
  int64_t* sent = nullptr;       // [most] the keys of each rank, in bag order
  int32_t* places = nullptr;     // [most] for each key of the bags: its index in `sent`, + 1
  std::byte* scratch = nullptr;  // split_scratch_bytes(ranks * bags)
};

/// Bytes of scratch for the prefix sums of `lengths` lengths.
size_t split_scratch_bytes(Device, int64_t lengths);
namespace cuda {
size_t split_scratch_bytes(int64_t lengths);
}

/// Fills all arrays of the split. Shapes: keys [most], offsets [bags + 1].
HCTR_OP(void split_by_owner(Context&, const int64_t* keys, const int32_t* offsets, OwnerSplit))

/// offsets[i] = the sum of lengths[0, i). Shapes: lengths and offsets [count]; scratch split_scratch_bytes(count).
HCTR_OP(void add_lengths(Context&, const int32_t* lengths, int64_t count, int32_t* offsets, std::byte* scratch))

/// Keeps the places of keys that have a row. Key p is sent[places[p] - 1]. rows[i] is the row of key sent[i] at its
/// owner, or 0 if there is none. Sets found[p] to places[p] if key p has a row, else to 0. Shapes: places and found
/// [count].
HCTR_OP(void find_sent(Context&, const int32_t* places, const int32_t* rows, int64_t count, int32_t* found))

}  // namespace hctr::ops
