// Which keys are frequent, as a file says: what `table_inspect --count N --top F --json keys.json` writes, or a text
// like it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace hctr {

/// Sorted by (slot, key); slots are empty where rows belong to keys alone.
struct FrequentKeys {
  std::vector<int64_t> keys;
  std::vector<int32_t> slots;
};

/// {"hottest": [{"slot": 0, "key": 7}, ...]}; other members are not looked at. Where rows belong to keys alone, no
/// slots are needed, and a key may stand there more than once. Errors: Error(io); Error(data) naming file and entry
/// when an entry has no key, a slot does not exist, or a (slot, key) stands there twice.
FrequentKeys read_frequent_keys(const std::filesystem::path&, bool by_slot, int64_t slots);

}  // namespace hctr
