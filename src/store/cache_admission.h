// Which missed keys come into a cache.
#pragma once

#include <cstdint>
#include <vector>

namespace hctr {

/// Counts misses in a sketch (G. Cormode and S. Muthukrishnan, "An improved data stream summary: the count-min sketch",
/// 2005) whose counts are halved from time to time (G. Einziger et al., "TinyLFU", 2017): memory of a fixed size,
/// counts that are at least the true ones, and old misses that are forgotten.
class CacheAdmission {
 public:
  /// `keys`: about as many as the cache has.
  explicit CacheAdmission(int64_t keys) { resize(keys); }
  void resize(int64_t keys);
  /// Counts a miss. Returns how often the key was missed so far, at most 255.
  int count(int32_t space, int64_t key);

 private:
  std::vector<uint8_t> counts_;  // two rows, one behind the other
  uint64_t mask_ = 0;
  int64_t misses_ = 0;
};

}  // namespace hctr
