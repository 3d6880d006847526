// Samples in memory, slot-major: what parsing threads pass on to the assembly of batches.
#pragma once

#include <cstdint>
#include <vector>

namespace hctr {

/// `rows` samples. Vectors may be longer than needed: blocks are used again, and are not shrunk.
///   label    [rows, label_dim]
///   dense    [rows, dense_dim]
///   offsets  [slots * rows + 1]: bag (slot s, row r) holds keys offsets[s * rows + r] up to the next
///   keys     32-bit keys are widened as unsigned
struct SampleBlock {
  int64_t rows = 0;
  bool one_hot = false;  ///< each bag holds one key: offsets[i] is i, and the assembly of batches need not read them
  std::vector<float> label, dense;
  std::vector<int32_t> offsets;
  std::vector<int64_t> keys;
};

}  // namespace hctr
