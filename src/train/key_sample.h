// Counts keys in the first samples of the training set.
#pragma once

#include "config/sections/config.h"
#include "core/base/log.h"

namespace hctr {

struct SlotKeys {
  double keys = 0;      ///< mean number of keys per sample
  double distinct = 0;  ///< distinct keys per batch
};

/// Counts keys of one batch of at most `most_samples` samples. The result is indexed by sparse input and slot. Errors:
/// those of the reader.
std::vector<std::vector<SlotKeys>> sample_keys(const Config&, int64_t most_samples);

}  // namespace hctr
