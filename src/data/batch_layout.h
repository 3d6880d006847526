// How one rank's rows of a batch are laid out in one buffer, so that a single copy brings them to the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/step_state.h"

namespace hctr {

/// Capacities of one batch. Fixed for the whole run; only the counts inside vary.
struct BatchShape {
  struct Table {
    int64_t slots = 0;         ///< consecutive slots of the record that belong to this sparse input
    int64_t key_capacity = 0;  ///< most keys one batch can hold in this input
    int64_t keep = 0;          ///< a bag with more keys keeps its first `keep` ones; 0: bags are as on file
    bool keep_last = false;    ///< keeps the last ones instead
  };
  int64_t samples = 0;  ///< rows, per rank
  int64_t label_dim = 0, dense_dim = 0;
  std::vector<Table> tables;
};

/// Byte offsets of the parts of a batch buffer. Every part starts at a multiple of 256.
///   state    StepState
///   label    f32 [samples, label_dim]
///   dense    f32 [samples, dense_dim]
///   per table t, slot-major:
///     offsets i32 [slots * samples + 1]: bag (slot s, sample b) holds keys offsets[s * samples + b] up to the next
///     keys    i64 [key_capacity]: undefined past offsets.back()
/// Rows past valid_samples have label and dense 0 and empty bags.
struct BatchLayout {
  explicit BatchLayout(const BatchShape&);

  struct Table {
    size_t offsets = 0, keys = 0;
  };
  BatchShape shape;
  size_t state = 0, label = 0, dense = 0;
  std::vector<Table> tables;
  size_t bytes = 0;
};

/// Typed pointers into one batch buffer.
struct BatchView {
  BatchView(const BatchLayout&, std::byte* buffer);

  struct Table {
    int32_t* offsets;
    int64_t* keys;
  };
  StepState* state;
  float *label, *dense;
  std::vector<Table> tables;
};

}  // namespace hctr
