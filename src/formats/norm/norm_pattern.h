// Fast path for chunks whose records are all good and have the same pattern: a single pass without a branch per value.
// If the pattern is violated, norm_parse.cc parses the chunk again and reports any problem.
#pragma once

#include <vector>

#include "formats/data/sample_set.h"
#include "formats/norm/norm_header.h"

namespace hctr {

/// Number of bytes that may be read past the last record. Their values are ignored.
inline constexpr size_t kPatternSlack = 16;

/// The pattern of earlier chunks, which the next chunk probably has, too. One per thread.
struct NormPattern {
  std::vector<uint8_t> ones;  ///< [inputs] 1: all slots of the input have one key; empty: no chunk parsed yet
  bool wide = false;          ///< some keys need 64 bits

  // Scratch memory.
  std::vector<const std::byte*> inputs;  // [records, inputs] address of each input's first slot
  std::vector<int32_t> nnz;              // [records, slots] key counts of inputs with ones[input] = 0
};

/// Parses the selected rows of a chunk into a block with may_pack. `sums`: verify checksums. Returns false if a record
/// is bad or violates the pattern; the block is then undefined.
bool parse_norm_pattern(const NormInfo&, const Chunk&, const RowSelection&, bool sums, NormPattern&, SampleBlock&);

}  // namespace hctr
