// Converts keys and offsets from a caller's types to the key batch of a table.
#pragma once

#include "core/device/op.h"

namespace hctr::ops {

enum class KeyType { i32, u32, i64, u64 };
constexpr int64_t size_of(KeyType type) { return type == KeyType::i32 || type == KeyType::u32 ? 4 : 8; }

/// The keys of one feature. Bag b has the keys offsets[b] - offsets[0] up to offsets[b + 1] - offsets[0].
struct FeatureBags {
  const void* keys = nullptr;  // [most]
  KeyType type = KeyType::i64;
  int64_t most = 0;               // number of keys; larger offsets are clamped to `most`
  const void* offsets = nullptr;  // [bags + 1]; null: one key per bag
  bool wide = false;              // true: 64-bit offsets, false: 32-bit
  int64_t bags = 0;
  const float* weights = nullptr;  // [most]; null: all weights are 1
};

/// Appends the bags and keys of a feature to those of the features before it, which end at offsets[0]:
/// offsets[b] = offsets[0] + the feature's b-th offset - its first offset, for b >= 1. Offsets outside the keys are
/// clamped. Key i is written to keys[offsets[0] + i] as a signed 64-bit integer: 32-bit keys keep their value, unsigned
/// 64-bit keys keep their bits. Copies the weights likewise, unless `weights` is null. Shapes: offsets [bags + 1].
HCTR_OP(void place_bags(Context&, FeatureBags, int32_t* offsets, int64_t* keys, float* weights))

}  // namespace hctr::ops
