// Cutting a Norm file for many threads. The cutter names ranges of bytes by arithmetic. The thread that parses a range
// reads it and walks its records from where one seems to begin; where the first one truly begins it learns from the
// thread that has the range before. A right guess, as nearly all are, leaves nothing to be done in turn.
#pragma once

#include <future>
#include <memory>

#include "formats/data/sample_set.h"
#include "formats/io/byte_file.h"
#include "formats/norm/norm_header.h"

namespace hctr {

/// One file from `from` on. A chunk is a range of bytes, and holds the records that begin in it: perhaps none, where
/// records are longer. The last chunk is the empty range at the end of the file, where find_norm_records() checks that
/// the records end there.
class NormCutter : public Cutter {
 public:
  /// `range`: bytes of a chunk; ranges begin at multiples of it.
  NormCutter(std::shared_ptr<const NormInfo>, FilePosition from,
             int64_t range = 512 << 10);  // fits the second-level cache together with the parsed samples
  bool next(Chunk& chunk) override;
  std::optional<int64_t> consumed() const override { return at_; }

 private:
  std::shared_ptr<const NormInfo> info_;
  std::shared_ptr<const ByteFile> file_;
  std::future<FilePosition> before_;  // where the records of the chunk cut last end
  int64_t at_, range_;
  bool ended_ = false;
};

/// Reads what NormCutter cut and finds its records: sets begin, records, bytes, buffer and begins of the chunk. Waits
/// until the chunk before has found its own, so each chunk must be in the hands of a thread of its own, or be read in
/// order. Once for each chunk. Errors: Error(data) naming file, record and offset: cut off, framing that makes no
/// sense, more bytes than records; EarlierChunkFailed.
void find_norm_records(const NormInfo&, Chunk& chunk);

}  // namespace hctr
