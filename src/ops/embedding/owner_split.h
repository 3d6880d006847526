// Keys of bags of any length on their way to the ranks that own their rows, where sizes are known with the batch only.
#pragma once

#include "core/device/op.h"
#include "ops/embedding/key_split.h"

namespace hctr::ops {

/// The keys of `bags` bags, split by owner: rank r of `ranks` owns the keys of which rank_of_key() says so; with one
/// rank all are its own. All on one device.
struct OwnerSplit {
  int32_t ranks = 1;
  int64_t bags = 0, most = 0;    // most: keys that there is memory for
  int32_t* lengths = nullptr;    // [ranks * bags + 1] keys of bag b that rank r owns, at r * bags + b; then 0
  int32_t* begin = nullptr;      // [ranks * bags + 1] where they begin in `sent`, and their end
  int64_t* sent = nullptr;       // [most] the keys of each rank, in the order of bags
  int32_t* places = nullptr;     // [most] 1 + where key p of the bags is in `sent`
  std::byte* scratch = nullptr;  // split_scratch_bytes(ranks * bags)
};

/// Bytes of scratch for the prefix sums of so many lengths.
size_t split_scratch_bytes(Device, int64_t lengths);
namespace cuda {
size_t split_scratch_bytes(int64_t lengths);
}

/// Fills all arrays of the split. Shapes: keys [most], offsets [bags + 1].
HCTR_OP(void split_by_owner(Context&, const int64_t* keys, const int32_t* offsets, OwnerSplit))

/// offsets[i] = the sum of lengths[0, i). Shapes: lengths and offsets [count]; scratch split_scratch_bytes(count).
HCTR_OP(void add_lengths(Context&, const int32_t* lengths, int64_t count, int32_t* offsets, std::byte* scratch))

/// found[p] = places[p] where rows[places[p] - 1], the row of the key at its owner, is not 0, else 0. Shapes: places
/// and found [count].
HCTR_OP(void find_sent(Context&, const int32_t* places, const int32_t* rows, int64_t count, int32_t* found))

}  // namespace hctr::ops
