// Reads a file of frequent keys: the output of `table_inspect --count N --top F --json keys.json`, or JSON of the same
// form.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace hctr {

/// Frequent keys, sorted by (slot, key). `slots` is empty if the table's rows do not depend on slots.
struct FrequentKeys {
  std::vector<int64_t> keys;
  std::vector<int32_t> slots;
};

/// Reads {"hottest": [{"slot": 0, "key": 7}, ...]} and ignores other members. Without `by_slot`, slots are optional and
/// a key may occur more than once. Errors: Error(io); Error(data) naming file and entry if an entry has no key, a slot
/// does not exist, or a (slot, key) occurs twice.
FrequentKeys read_frequent_keys(const std::filesystem::path&, bool by_slot, int64_t slots);

}  // namespace hctr
