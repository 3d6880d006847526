// What the first samples of the training set say of its keys.
#pragma once

#include "base/log.h"
#include "model/config.h"

namespace hctr {

struct SlotKeys {
  double keys = 0;      ///< of a sample
  double distinct = 0;  ///< different keys of a batch
};

/// Per sparse input and slot, from at most a batch of `most_samples`. Errors: those of the reader.
std::vector<std::vector<SlotKeys>> sample_keys(const Config&, int64_t most_samples);

}  // namespace hctr
