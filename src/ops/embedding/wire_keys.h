// Keys of a batch as sent inside a host before they leave it: packed, so that messages have the size of the actual keys
// instead of the capacity, each key with its bag. And the lists of their vectors.
#pragma once

#include "core/device/op.h"
#include "ops/embedding/key_split.h"

namespace hctr::ops {

/// Keys of a rank, in the order of its bags. Bags are numbered column * samples + sample, over the columns of all
/// owners. All on one device.
struct WireKeys {
  int64_t* keys = nullptr;
  int32_t* bags = nullptr;  // bag of each key, ascending for one rank
};

/// Bytes of scratch for pack_keys or merge_packed_keys with this many bags in all messages together.
size_t packed_keys_scratch_bytes(Device, int64_t bags);
namespace cpu {
size_t packed_keys_scratch_bytes(int64_t bags);
}
namespace cuda {
size_t packed_keys_scratch_bytes(int64_t bags);
}

/// Packs the keys that are sent to all owners. `present`: as split_keys. `vectors`: the bags that have a key, in the
/// order of bags, each as its index in `present`. Shapes: counts i32 [2 * split.ranks]: keys and vectors of owner 0,
/// then of owner 1, and so on, whatever the order of their columns; scratch packed_keys_scratch_bytes(split.count *
/// samples).
HCTR_OP(void pack_keys(Context&, KeyBatch, KeySplit, WireKeys packed, uint8_t* present, int32_t* vectors, Tensor counts,
                       std::byte* scratch))

/// Merges the keys that were received from some ranks into one batch, as merge_keys does. `first` [ranks + 1]: where
/// the keys of each rank begin. `first_bag`: the number of the first bag of these columns. `vectors`: the bags that
/// have a key, by rank and in the order of bags, each as the index of its vector in [ranks * samples, columns]. Shapes:
/// offsets i32 [columns * ranks * samples + 1]; scratch packed_keys_scratch_bytes(columns * ranks * samples).
/// `shape.words` is not used.
HCTR_OP(void merge_packed_keys(Context&, MergeShape shape, WireKeys received, const int32_t* first, int32_t first_bag,
                               Tensor offsets, Tensor keys, int32_t* vectors, std::byte* scratch))

}  // namespace hctr::ops
