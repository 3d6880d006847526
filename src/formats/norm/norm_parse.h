// Parsing a chunk of a Norm file whose records have been found: see norm_cutter.h.
#pragma once

#include <vector>

#include "formats/data/sample_set.h"
#include "formats/norm/norm_header.h"
#include "formats/norm/norm_pattern.h"

namespace hctr {

/// Scratch memory of parsing, kept by each thread.
struct ParseScratch {
  std::vector<const std::byte*> slots;   // slots of each good record
  std::vector<int32_t> nnz;              // [records, slots]
  std::vector<const std::byte*> inputs;  // [records, inputs] where the first slot of each input begins
  std::vector<uint8_t> one_hot;          // [inputs] whether each slot of the input has one key in all records
  BadRecords failed;                     // filled by count_norm_rows(): those that fail their check sum,
  std::vector<int64_t> failed_records;   // the numbers of the failed records
  NormPattern pattern;                   // pattern of blocks that may be packed
};

/// The number of rows of a chunk. With a policy: all records. Without one: those whose check sum is right; the others
/// are noted in the scratch.
int64_t count_norm_rows(const NormInfo&, const Chunk&, std::optional<BadRecordPolicy>, ParseScratch&);

/// Parses the selected rows of a chunk into `block` (emptied first); for a partial selection the rows have been
/// counted. Without a policy, records with a wrong check sum are skipped and returned; other bad records are errors. A
/// block that may be packed is packed if all records are good. Errors: Error(data) naming file, record, offset, and
/// slot or sparse input with its limit.
BadRecords parse_norm_chunk(const NormInfo&, const Chunk&, const RowSelection&, std::optional<BadRecordPolicy>,
                            ParseScratch&, SampleBlock& block);

}  // namespace hctr
