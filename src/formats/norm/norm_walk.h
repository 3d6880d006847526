// Finds the records of a Norm file, from a known record or by guessing.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/norm/norm_header.h"

namespace hctr {

/// The reason why walk_records() stopped at begins.back().
struct RecordWalk {
  enum class End { stop, most, short_of_bytes, bad };
  End end = End::stop;
  std::string problem{};  ///< bad: describes the bad record
};

/// Walks over whole records from begins.back() on and appends the end of each record, which is the start of the next.
/// Stops at a record that starts at `stop` or later, after `most` records, at an incomplete record, and at a record
/// whose end cannot be found.
RecordWalk walk_records(const NormInfo&, std::span<const std::byte> bytes, size_t stop, int64_t most,
                        std::vector<uint32_t>& begins);

/// Guesses the first offset in `bytes` at which a record starts. `offset`: file offset of bytes[0]. The caller must
/// verify the guess.
std::optional<uint32_t> guess_record(const NormInfo&, std::span<const std::byte> bytes, int64_t offset);

}  // namespace hctr
