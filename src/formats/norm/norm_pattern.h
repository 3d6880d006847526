// Parses a chunk whose records are good and alike: in one pass and without a branch for each value. If anything breaks
// the pattern it returns false, and norm_parse.cc parses the chunk again, finds the problem and reports it.
#pragma once

#include <vector>

#include "formats/data/sample_set.h"
#include "formats/norm/norm_header.h"

namespace hctr {

/// Bytes after the last record of a chunk's buffer that may be read, whatever they are.
inline constexpr size_t kPatternSlack = 16;

/// The pattern of earlier chunks, kept by each thread, which the next chunk is expected to have.
struct NormPattern {
  std::vector<uint8_t> ones;  ///< [inputs] 1: each slot of the input has one key; empty: no chunk was seen
  bool wide = false;          ///< keys need 64 bits

  // Scratch memory.
  std::vector<const std::byte*> inputs;  // [records, inputs] where the first slot of each input begins
  std::vector<int32_t> nnz;              // [records, slots] of inputs without ones
};

/// Parses the selected rows of a chunk, all of which are good, into a block that may be packed. `sums`: check sums are
/// to be checked. False when a record breaks the pattern: the block is then undefined.
bool parse_norm_pattern(const NormInfo&, const Chunk&, const RowSelection&, bool sums, NormPattern&, SampleBlock&);

}  // namespace hctr
