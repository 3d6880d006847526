// The most frequent keys, counted in a data set or recorded during training, with the norms of their rows.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "config/json.h"
#include "formats/model/sparse_reader.h"
#include "hctr/formats.h"
#include "key_counts.h"

namespace hctr {

struct HotKey {
  uint64_t slot;
  int64_t key, times;
};

std::vector<HotKey> hottest(const KeyCounts&, int64_t top);
std::vector<HotKey> hottest(const std::vector<formats::RowAccess>&);

/// The norms of the rows of some keys.
class NormsOfKeys {
 public:
  void want(const std::vector<HotKey>&);
  void take_from(const SparseRows&, int64_t dim);
  /// Returns the norm, negative if the key has no row.
  double of(const HotKey& key) const { return norms_.at({key.slot, key.key}); }

 private:
  std::map<std::pair<uint64_t, int64_t>, double> norms_;
};

/// Returns "slot 2, key 7" if `by_slot`, otherwise "key 7".
std::string name_of(bool by_slot, uint64_t slot, int64_t key);

/// Prints the keys under a title, and returns [{"slot", "key", "times", "norm"}, ...].
Json show_hottest(const std::string& title, bool by_slot, const std::vector<HotKey>&, const NormsOfKeys&);

}  // namespace hctr
