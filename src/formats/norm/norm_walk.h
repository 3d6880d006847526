// Finds the records of a Norm file: the next one from a known one, and a first one where none is known.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/norm/norm_header.h"

namespace hctr {

/// Why a walk over records ended, at begins.back().
struct RecordWalk {
  enum class End { stop, most, short_of_bytes, bad };
  End end = End::stop;
  std::string problem{};  ///< what is wrong with the record there, if it is bad
};

/// Walks whole records of `bytes` from begins.back() on and appends where each of them ends, which is where the next
/// begins. Stops at a record that begins at `stop` or later, after `most` records, at one that is not whole, and at
/// one whose end cannot be found.
RecordWalk walk_records(const NormInfo&, std::span<const std::byte> bytes, size_t stop, int64_t most,
                        std::vector<uint32_t>& begins);

/// The first offset in `bytes` where a record seems to begin; `offset`: of bytes[0] in the file. A guess: the caller
/// must verify it.
std::optional<uint32_t> guess_record(const NormInfo&, std::span<const std::byte> bytes, int64_t offset);

}  // namespace hctr
