// Counts how often the keys of one sparse input occur in a data set.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>

#include "config/sections/config.h"
#include "core/base/log.h"

namespace hctr {

struct KeyCounts {
  int64_t samples = 0;
  /// Counts by (slot, key); slot is 0 if the table's slots share rows.
  std::map<uint64_t, std::unordered_map<int64_t, int64_t>> of_slot;
  int64_t of(uint64_t slot, int64_t key) const;
};

/// Reads the first `samples` samples of the training data. Errors: those of the Reader.
KeyCounts count_keys(const Config&, size_t input, bool by_slot, int64_t samples, const Log&);

}  // namespace hctr
