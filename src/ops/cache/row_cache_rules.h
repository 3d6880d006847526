// Row cache code shared by the kernels and the CPU: entries, set selection, and element conversion per storage type.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>

#include "core/base/fp8.h"
#include "core/base/half.h"
#include "ops/cache/row_cache.h"
#include "ops/common/rounding.h"
#include "ops/embedding/hash_index.h"

namespace hctr::ops {

/// Tombstone: the entry of a removed key in a pool with CachePool::whole set. Searches continue past tombstones.
inline constexpr uint64_t kCacheGone = 0xffffffffu;
/// This bit of an entry is set if the entry's row is older than the last update.
inline constexpr uint64_t kCacheStale = 0x80000000u;
/// Values of `places` for keys without a cached row. kPlaceDefault: the key gets the default. kPlaceMissing: the key is
/// a miss. kPlaceFilled - i: the key gets the answer fill.found[i].
inline constexpr int32_t kPlaceDefault = -1, kPlaceMissing = -2, kPlaceFilled = -3;

/// The hash of a key: the first set to search, and the tag in the entry's upper 32 bits.
struct CacheHash {
  uint32_t set, tag;
  HCTR_HD CacheHash(const CachePool& pool, int64_t key, int32_t space) {
    const uint64_t hash = HashIndex::hash(key, space);
    set = static_cast<uint32_t>((hash & 0xffffffffu) * pool.sets >> 32);
    tag = static_cast<uint32_t>(hash >> 32);
  }
};

HCTR_HD inline uint32_t next_set(const CachePool& pool, uint32_t set) { return set + 1 < pool.sets ? set + 1 : 0; }

HCTR_HD inline uint64_t cache_entry(uint32_t tag, uint32_t row) { return static_cast<uint64_t>(tag) << 32 | (row + 1); }
HCTR_HD inline bool holds_key(uint64_t entry) { return entry != 0 && entry != kCacheGone; }
HCTR_HD inline bool is_stale(uint64_t entry) { return (entry & kCacheStale) != 0; }
HCTR_HD inline uint32_t cache_row(uint64_t entry) { return static_cast<uint32_t>(entry & ~kCacheStale) - 1; }
HCTR_HD inline bool may_hold(uint64_t entry, uint32_t tag) {
  return holds_key(entry) && static_cast<uint32_t>(entry >> 32) == tag;
}

HCTR_HD inline int bytes_of(CachedType type) {
  return type == CachedType::f32 ? 4 : type == CachedType::f16 || type == CachedType::bf16 ? 2 : 1;
}

/// Returns the scale of a row from its largest magnitude. Types without a scale, and rows of zeros, have scale 1.
HCTR_HD inline float cache_scale(CachedType type, float largest) {
  const float most = type == CachedType::int8 ? 127.0f : type == CachedType::fp8 ? Fp8E4M3::kLargest : 0.0f;
  if (most == 0 || !(largest > 0) || largest > kLargest<float>) return 1;
  const float scale = largest / most;
  return scale > 0 ? scale : 1;
}

HCTR_HD inline float cached_element(CachedType type, const std::byte* row, int64_t i, float scale) {
  switch (type) {
    case CachedType::f32:
      return reinterpret_cast<const float*>(row)[i];
    case CachedType::f16:
      return static_cast<float>(reinterpret_cast<const Half*>(row)[i]);
    case CachedType::bf16:
      return static_cast<float>(reinterpret_cast<const BFloat16*>(row)[i]);
    case CachedType::fp8:
      return static_cast<float>(reinterpret_cast<const Fp8E4M3*>(row)[i]) * scale;
    case CachedType::int8:
      return static_cast<float>(reinterpret_cast<const int8_t*>(row)[i]) * scale;
  }
  return 0;
}

/// Stores element i, rounded to the nearest value of the type.
HCTR_HD inline void store_cached(CachedType type, std::byte* row, int64_t i, float value, float scale) {
  switch (type) {
    case CachedType::f32:
      reinterpret_cast<float*>(row)[i] = value;
      break;
    case CachedType::f16:
      reinterpret_cast<Half*>(row)[i] = rounded_to_nearest<Half>(value);
      break;
    case CachedType::bf16:
      reinterpret_cast<BFloat16*>(row)[i] = rounded_to_nearest<BFloat16>(value);
      break;
    case CachedType::fp8:
      reinterpret_cast<Fp8E4M3*>(row)[i] = Fp8E4M3(value / scale);
      break;
    case CachedType::int8: {
      const float scaled = rintf(value / scale);  // NaN becomes 0
      reinterpret_cast<int8_t*>(row)[i] = static_cast<int8_t>(scaled > 127       ? 127
                                                              : scaled < -127    ? -127
                                                              : scaled == scaled ? scaled
                                                                                 : 0);
      break;
    }
  }
}

/// Returns the last part whose member kFirst is at most `at`.
template <int64_t CachePart::*kFirst>
HCTR_HD inline int32_t last_part_from(const CacheLookup& lookup, int64_t at) {
  int32_t low = 0, high = lookup.part_count - 1;
  while (low < high) {
    const int32_t middle = (low + high + 1) / 2;
    if (lookup.part(middle).*kFirst <= at)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

/// Returns the part that contains vector `item`.
HCTR_HD inline int32_t part_of_item(const CacheLookup& lookup, int64_t item) {
  return last_part_from<&CachePart::first_item>(lookup, item);
}

/// The keys of vector `item`, as a range [begin, end) of indices among the keys of all parts.
struct CacheBag {
  int64_t begin, end;
  HCTR_HD CacheBag(const CachePart& part, int64_t item) {
    const int64_t i = item - part.first_item;
    begin = part.first_key + (part.offsets ? part.offsets[i] : i);
    end = part.offsets ? part.first_key + part.offsets[i + 1] : begin + 1;
  }
};

/// Returns the weight of each key of a bag with `keys` keys, like KeyBatch::weight().
HCTR_HD inline float weight_of_bag(Combiner combiner, int64_t keys) {
  if (combiner == Combiner::sum || combiner == Combiner::none || keys <= 1) return 1.0f;
  return 1.0f / (combiner == Combiner::mean ? static_cast<float>(keys) : sqrtf(static_cast<float>(keys)));
}

/// Returns the number of eras since the entry's last lookup, modulo 256.
HCTR_HD inline uint32_t age_of(uint32_t era, uint8_t used) { return (era - used) & 0xffu; }

}  // namespace hctr::ops
