// Parses a chunk of a Norm file after find_norm_records() (norm_cutter.h).
#pragma once

#include <vector>

#include "formats/data/sample_set.h"
#include "formats/norm/norm_header.h"
#include "formats/norm/norm_pattern.h"

namespace hctr {

/// Scratch memory for parsing, one per thread.
struct ParseScratch {
  std::vector<const std::byte*> slots;   // address of the slots in each good record
  std::vector<int32_t> nnz;              // [records, slots]
  std::vector<const std::byte*> inputs;  // [records, inputs] address of each input's first slot
  std::vector<uint8_t> one_hot;          // [inputs] whether all slots of the input have one key in all records
  BadRecords failed;                     // records with a wrong checksum, set by count_norm_rows()
  std::vector<int64_t> failed_records;   // indices of the failed records
  NormPattern pattern;                   // pattern of earlier chunks, for blocks with may_pack
};

/// Counts the rows of a chunk. With a policy, all records are rows. Without a policy, records with a wrong checksum are
/// not rows and are stored in the scratch memory.
int64_t count_norm_rows(const NormInfo&, const Chunk&, std::optional<BadRecordPolicy>, ParseScratch&);

/// Clears `block` and parses the selected rows of a chunk into it. For a partial selection, call count_norm_rows()
/// first. Without a policy, records with a wrong checksum are skipped and returned, and other bad records are errors.
/// If all records are good and block.may_pack is set, the block is packed. Errors: Error(data) naming file, record,
/// offset, and slot or sparse input with its limit.
BadRecords parse_norm_chunk(const NormInfo&, const Chunk&, const RowSelection&, std::optional<BadRecordPolicy>,
                            ParseScratch&, SampleBlock& block);

}  // namespace hctr
