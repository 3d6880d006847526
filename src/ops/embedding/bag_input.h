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

/// to[b] = to[0] + offsets[b] - offsets[0] for b >= 1: appends the bags after the preceding bags, which end at to[0].
/// Offsets outside the keys are clamped. Shapes: to [bags + 1].
HCTR_OP(void place_offsets(Context&, FeatureBags, int32_t* to))

/// keys[placed[0] + i] = key i as a signed 64-bit integer: 32-bit keys keep their value, unsigned 64-bit keys keep
/// their bits. Copies the weights likewise, unless `weights` is null. Shapes: placed [bags + 1], output of
/// place_offsets().
HCTR_OP(void place_keys(Context&, FeatureBags, const int32_t* placed, int64_t* keys, float* weights))

}  // namespace hctr::ops
