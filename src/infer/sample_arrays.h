// Samples of a data set as arrays, as a program has them that scores with Model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/sections/config.h"
#include "formats/data/source.h"
#include "hctr/model.h"

namespace hctr {

struct SampleArrays {
  struct Keys {
    std::string name;
    int64_t slots = 0;
    std::vector<int64_t> keys, offsets;  ///< offsets: [samples * slots + 1]
    bool one_each = true;                ///< every slot has one key
  };
  int64_t samples = 0, dense_dim = 0;
  std::string dense_name;
  std::vector<float> dense;  ///< [samples, dense_dim]
  std::vector<Keys> inputs;

  /// Views of the samples from `first` on, which hold as long as this does. Keys of slots with one key each have no
  /// offsets.
  std::vector<InputView> views(int64_t first) const;
};

/// The first `most` samples of a source. Errors: those of reading.
SampleArrays read_sample_arrays(const Config&, const Source&, int64_t most);

}  // namespace hctr
