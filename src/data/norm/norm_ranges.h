// A Norm file read by many threads. Ranges of it are cut by arithmetic, and whoever parses one reads it and walks its
// records from where one seems to begin; where one truly begins is then told by whoever has the range before. A right
// guess, as nearly all are, leaves nothing to be done in turn.
#pragma once

#include <future>
#include <memory>

#include "data/io/byte_file.h"
#include "data/norm/norm_header.h"
#include "data/sample_set.h"

namespace hctr {

/// One file from `from` on. A chunk is a range of bytes, and becomes those records that begin in it: perhaps none,
/// where records are longer. The last chunk is no range but the end of the file, where it is seen whether the records
/// end there.
class NormRanges : public Cutter {
 public:
  /// `range`: bytes of a chunk; ranges begin at multiples of it.
  NormRanges(std::shared_ptr<const NormInfo>, Place from,
             int64_t range = 512 << 10);  // fits the second-level cache together with the parsed samples
  bool next(Chunk& chunk) override;

 private:
  std::shared_ptr<const NormInfo> info_;
  std::shared_ptr<const ByteFile> file_;
  std::future<Place> before_;  // where the records of the chunk cut last end
  int64_t at_, range_;
  bool ended_ = false;
};

/// Reads what NormRanges cut and finds its records: begin, records, bytes, buffer and begins of the chunk are set then.
/// Waits for the chunk before to get as far, so each chunk must be in the hands of a thread of its own, or be read in
/// order. Once for each chunk. Errors: Error(data) naming file, record and offset: cut off, framing that makes no
/// sense, more bytes than records; also when a chunk before could not be read.
void read_norm_range(const NormInfo&, Chunk& chunk);

}  // namespace hctr
