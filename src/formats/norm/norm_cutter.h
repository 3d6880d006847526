// Cuts a Norm file for many threads. The cutter computes ranges of bytes. The thread that parses a range guesses
// where its first record begins; the thread of the previous range confirms or corrects that. The guess is nearly always
// right, and threads then do not wait for each other.
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

/// Reads the chunk that NormCutter cut and finds its records: sets begin, records, bytes, buffer and begins. Waits
/// until the previous chunk has found its own, so each chunk needs a thread of its own, or chunks are read in order.
/// Once for each chunk. Errors: Error(data) naming file, record and offset: cut off, framing that makes no sense, more
/// bytes than records; EarlierChunkFailed.
void find_norm_records(const NormInfo&, Chunk& chunk);

}  // namespace hctr
