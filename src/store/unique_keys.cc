#include "store/unique_keys.h"

#include <bit>

#include "core/base/expect.h"

namespace hctr {

void UniqueKeys::set(std::span<const int64_t> all) {
  HCTR_EXPECT(all.size() < (size_t{1} << 30), "a request of ", all.size(), " keys");
  keys.clear();
  places.clear();
  duplicates.clear();
  const size_t slots = std::bit_ceil(2 * all.size() + 1);
  const int shift = 64 - std::countr_zero(slots);
  heads_.assign(slots, 0);
  for (size_t i = 0; i < all.size(); ++i) {
    size_t at = slots == 1 ? 0 : (static_cast<uint64_t>(all[i]) * 0x9E3779B97F4A7C15u) >> shift;
    while (heads_[at] != 0 && all[static_cast<size_t>(heads_[at] - 1)] != all[i]) at = (at + 1) & (slots - 1);
    if (heads_[at] != 0) {
      duplicates.emplace_back(static_cast<int32_t>(i), heads_[at] - 1);
      continue;
    }
    heads_[at] = static_cast<int32_t>(i) + 1;
    keys.push_back(all[i]);
    places.push_back(static_cast<int32_t>(i));
  }
}

}  // namespace hctr
