// Decides which missed keys are admitted to a cache.
#pragma once

#include <cstdint>
#include <vector>

namespace hctr {

/// Counts misses in a sketch of fixed size: a count-min sketch (G. Cormode and S. Muthukrishnan, "An improved data
/// stream summary: the count-min sketch and its applications", 2005), which never underestimates a count. All counts
/// are halved from time to time, so that old misses decay (G. Einziger et al., "TinyLFU", 2017).
class CacheAdmission {
 public:
  /// `keys`: the approximate capacity of the cache.
  explicit CacheAdmission(int64_t keys) { resize(keys); }
  void resize(int64_t keys);
  /// Counts a miss. Returns the estimated number of misses of the key, at most 255.
  int count(int32_t space, int64_t key);

 private:
  std::vector<uint8_t> counts_;  // two contiguous rows of counters
  uint64_t mask_ = 0;
  int64_t misses_ = 0;
};

}  // namespace hctr
