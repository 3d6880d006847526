// Converts keys and offsets from a caller's types to the batch of a table.
#pragma once

#include "core/device/op.h"

namespace hctr::ops {

enum class KeyType { i32, u32, i64, u64 };
constexpr int64_t size_of(KeyType type) { return type == KeyType::i32 || type == KeyType::u32 ? 4 : 8; }

/// The keys of one feature: bag b has keys [offsets[b], offsets[b + 1]), counted from offsets[0] on.
struct FeatureBags {
  const void* keys = nullptr;  // [most]
  KeyType type = KeyType::i64;
  int64_t most = 0;               // keys: no more are read, whatever the offsets say
  const void* offsets = nullptr;  // [bags + 1]; null: one key each
  bool wide = false;              // offsets have 64 bits, else 32
  int64_t bags = 0;
  const float* weights = nullptr;  // [most]; null: all are 1
};

/// to[b] = to[0] + offsets[b] - offsets[0] for b from 1 on: the bags after those that end at to[0]. Offsets outside the
/// keys are clamped. Shapes: to [bags + 1].
HCTR_OP(void place_offsets(Context&, FeatureBags, int32_t* to))

/// keys[placed[0] + i] = key i as a signed 64-bit number: 32-bit keys keep their value, unsigned 64-bit ones their
/// bits. The same with `weights`, unless that is null. Shapes: placed [bags + 1], as place_offsets left it.
HCTR_OP(void place_keys(Context&, FeatureBags, const int32_t* placed, int64_t* keys, float* weights))

}  // namespace hctr::ops
