// Cuts a Norm file into byte ranges for concurrent parsing. The thread that parses a range guesses the start of its
// first record; the thread of the preceding range confirms or corrects the guess. Guesses are nearly always right, so
// threads rarely wait for each other.
#pragma once

#include <future>
#include <memory>

#include "formats/data/sample_set.h"
#include "formats/io/byte_file.h"
#include "formats/norm/norm_header.h"

namespace hctr {

/// Cuts one file, starting at `from`. A chunk is a byte range and contains the records that start in the range. A range
/// that lies within one long record contains no record. The last chunk is an empty range at the end of the file. For
/// this chunk, find_norm_records() checks that the last record ends at the end of the file.
class NormCutter : public Cutter {
 public:
  /// `range`: bytes per chunk. Chunks start at multiples of `range`.
  NormCutter(std::shared_ptr<const NormInfo>, FilePosition from,
             int64_t range = 512 << 10);  // fits the L2 cache together with the parsed samples
  bool next(Chunk& chunk) override;
  std::optional<int64_t> consumed() const override { return at_; }

 private:
  std::shared_ptr<const NormInfo> info_;
  std::shared_ptr<const ByteFile> file_;
  std::future<FilePosition> before_;  // end of the last cut chunk's records
  int64_t at_, range_;
  bool ended_ = false;
};

/// Reads a chunk from NormCutter and finds its records: sets begin, records, bytes, buffer and begins. Call once per
/// chunk. Blocks until the preceding chunk's records are found, so chunks must be processed concurrently or in order.
/// Errors: Error(data) naming file, record and offset for a truncated file, an invalid frame, or bytes after the last
/// record; EarlierChunkFailed.
void find_norm_records(const NormInfo&, Chunk& chunk);

}  // namespace hctr
