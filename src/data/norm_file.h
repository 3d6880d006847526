// Reading a Norm file: cut into chunks of whole records, which is quick, and parsing a chunk, which threads share.
#pragma once

#include <memory>
#include <vector>

#include "data/byte_file.h"
#include "data/norm_header.h"
#include "data/sample_block.h"

namespace hctr {

/// Whole records of one file, as bytes.
struct NormChunk {
  std::shared_ptr<const NormInfo> info;  ///< shared: chunks are still parsed when their file is closed
  std::vector<std::byte> buffer;
  std::vector<uint32_t> begins;  ///< [records + 1] where in the buffer each block begins, and where the last one ends
  int64_t first_record = 0;      ///< index in the file
  int64_t file_offset = 0;       ///< of the buffer's first byte

  int64_t records() const { return static_cast<int64_t>(begins.size()) - 1; }
};

/// One file, read once from front to back.
class NormFile {
 public:
  /// Errors: those of read_norm_info().
  NormFile(const fs::path&, const NormDemands&);

  const NormInfo& info() const { return *info_; }
  /// Fills `chunk` with the next records, at least one; false when there are no more.
  /// Errors: Error(data) naming file, record and offset: cut off, framing that makes no sense, more bytes than records.
  bool next(NormChunk& chunk);

 private:
  void cut(NormChunk& chunk, size_t used);
  [[noreturn]] void fail(const NormChunk& chunk, const std::byte* at, const std::string& problem) const;

  std::shared_ptr<const NormInfo> info_;
  ByteFile file_;
  int64_t record_ = 0;           // next to be cut
  std::vector<std::byte> rest_;  // read, but not a whole record yet
};

/// What parsing needs besides its result, kept by each thread.
struct ParseScratch {
  std::vector<const std::byte*> slots;  // of each good record
  std::vector<int32_t> nnz;             // [records, slots]
};

/// Parses a chunk into `block` (emptied first) and returns how many records failed their check sum; these are left out.
/// Errors: Error(data) naming file, record, offset, and slot or sparse input with its limit.
int64_t parse_chunk(const NormChunk&, ParseScratch&, SampleBlock& block);

/// Every sample of a file of less than 1 GiB, for tools and tests. `skipped`, where given, counts records that failed their check sum.
SampleBlock read_norm_file(const fs::path&, const NormDemands&, int64_t* skipped = nullptr);

}  // namespace hctr
