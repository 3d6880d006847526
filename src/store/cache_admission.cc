#include "store/cache_admission.h"

#include <algorithm>
#include <bit>

#include "core/base/random.h"
#include "ops/embedding/hash_index.h"

namespace hctr {

void CacheAdmission::resize(int64_t keys) {
  const uint64_t width = std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(keys, 512)) * 2);
  counts_.assign(2 * width, 0);
  mask_ = width - 1;
  misses_ = 0;
}

int CacheAdmission::count(int32_t space, int64_t key) {
  if (++misses_ > static_cast<int64_t>(mask_)) {
    for (uint8_t& count : counts_) count /= 2;
    misses_ = 0;
  }
  const uint64_t hash = ops::HashIndex::hash(key, space);
  uint8_t* const counts[2] = {&counts_[hash & mask_], &counts_[mask_ + 1 + (hash >> 32 & mask_)]};
  const uint8_t least = std::min(*counts[0], *counts[1]);
  if (least < 255)
    for (uint8_t* const count : counts) *count = std::max<uint8_t>(*count, least + 1);
  return std::min(255, least + 1);
}

}  // namespace hctr
