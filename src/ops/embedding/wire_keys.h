// The format of keys that ranks of one host exchange before the keys are sent to other hosts: packed keys, each with
// its bag number. Message sizes then depend on the number of keys instead of the capacity. The operators also list, for
// each non-empty bag, where its vector is.
#pragma once

#include "core/device/op.h"
#include "ops/embedding/key_split.h"

namespace hctr::ops {

/// Packed keys of a rank, in bag order. The number of a bag is column * samples + sample; `column` counts the columns
/// of all owners. All arrays are on one device.
struct WireKeys {
  int64_t* keys = nullptr;
  int32_t* bags = nullptr;  // bag number of each key; ascending within one rank
};

/// Bytes of scratch for pack_keys() or merge_packed_keys(), with `bags` bags in all messages together.
size_t packed_keys_scratch_bytes(Device, int64_t bags);
namespace cpu {
size_t packed_keys_scratch_bytes(int64_t bags);
}
namespace cuda {
size_t packed_keys_scratch_bytes(int64_t bags);
}

/// Packs the keys that are sent to all owners. `present`: as in split_keys(). `vectors`: for each non-empty bag, in bag
/// order, the bag's index in `present`. `counts` i32 [2 * split.ranks]: for each owner, the number of its keys, then
/// the number of its vectors. Shapes: scratch packed_keys_scratch_bytes(split.count * samples).
HCTR_OP(void pack_keys(Context&, KeyBatch, KeySplit, WireKeys packed, uint8_t* present, int32_t* vectors, Tensor counts,
                       std::byte* scratch))

/// Merges the keys received from several ranks into one batch, like merge_keys(). `first` [ranks + 1]: where each
/// rank's keys start in `received`. `first_bag`: number of the first bag of these columns. `vectors`: for each
/// non-empty bag, ordered by rank and then by bag, the index of the bag's vector in [ranks * samples, columns]. Shapes:
/// offsets i32 [columns * ranks * samples + 1]; scratch packed_keys_scratch_bytes(columns * ranks * samples).
/// `shape.words` is unused.
HCTR_OP(void merge_packed_keys(Context&, MergeShape shape, WireKeys received, const int32_t* first, int32_t first_bag,
                               Tensor offsets, Tensor keys, int32_t* vectors, std::byte* scratch))

}  // namespace hctr::ops
