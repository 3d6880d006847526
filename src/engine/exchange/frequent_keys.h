// The frequent keys listed in a file: the output of `table_inspect --count N --top F --json keys.json`, or JSON of the
// same form.
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

/// {"hottest": [{"slot": 0, "key": 7}, ...]}; other members are ignored. If rows belong to keys alone, slots are
/// optional and a key may occur more than once. Errors: Error(io); Error(data) naming file and entry when an entry has
/// no key, a slot does not exist, or a (slot, key) occurs twice.
FrequentKeys read_frequent_keys(const std::filesystem::path&, bool by_slot, int64_t slots);

}  // namespace hctr
