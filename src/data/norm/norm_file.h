// Reading a Norm file: cut into chunks of whole records, which is quick, and parsing a chunk, which threads share.
#pragma once

#include <memory>
#include <vector>

#include "data/io/byte_file.h"
#include "data/norm/norm_header.h"
#include "data/sample_set.h"

namespace hctr {

/// One file, read once from `from` on. Chunks hold their bytes and where each record's block begins.
class NormFile : public Cutter {
 public:
  NormFile(std::shared_ptr<const NormInfo>, Place from);

  /// Errors: Error(data) naming file, record and offset: cut off, framing that makes no sense, more bytes than records.
  bool next(Chunk& chunk) override;

 private:
  void cut(Chunk& chunk, size_t used);
  [[noreturn]] void fail(const Chunk& chunk, const std::byte* at, const std::string& problem) const;

  std::shared_ptr<const NormInfo> info_;
  ByteFile file_;
  int64_t record_ = 0;           // next to be cut
  std::vector<std::byte> rest_;  // read, but not a whole record yet
};

/// What parsing needs besides its result, kept by each thread.
struct ParseScratch {
  std::vector<const std::byte*> slots;  // of each good record
  std::vector<int32_t> nnz;             // [records, slots]
  BadRecords failed;                    // filled by count_norm_rows(): those that fail their check sum,
  std::vector<int64_t> failed_records;  // and which they are
};

/// Rows of a chunk: without a policy its records but for those that fail their check sum, which are remembered; with
/// one all of them.
int64_t count_norm_rows(const NormInfo&, const Chunk&, std::optional<BadRecordPolicy>, ParseScratch&);

/// Parses a chunk, or of a shared one, whose rows have been counted, what is wanted, into `block` (emptied first).
/// Without a policy records that fail their check sum are left out and returned, others
/// that are bad are errors. Errors: Error(data) naming file, record, offset, and slot or sparse input with its limit.
BadRecords parse_norm_chunk(const NormInfo&, const Chunk&, std::optional<BadRecordPolicy>, ParseScratch&,
                            SampleBlock& block);

/// Every sample of a file of less than 1 GiB, for tools and tests. `skipped`, where given, counts records that failed
/// their check sum.
SampleBlock read_norm_file(const fs::path&, const NormDemands&, int64_t* skipped = nullptr);

}  // namespace hctr
