#include "formats/catalog/unlisted_keys.h"

#include <algorithm>

#include "formats/catalog/slot_rules_of.h"
#include "formats/data/column_rules.h"

namespace hctr {

std::vector<std::optional<int64_t>> unlisted_keys(const DataSection& section) {
  std::vector<std::optional<int64_t>> keys(static_cast<size_t>(std::max<int64_t>(section.slots(), 0)));
  const std::vector<SlotRule> rules = slot_rules_of(section);
  for (size_t s = 0; s < std::min(rules.size(), keys.size()); ++s)
    if (rules[s].vocabulary) keys[s] = rules[s].base + rules[s].buckets - 1;
  return keys;
}

}  // namespace hctr
