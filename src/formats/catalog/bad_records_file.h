// The file of skipped bad records: a JSON line for each, with file, record, offset and cause.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "config/schema.h"
#include "core/base/log.h"
#include "formats/data/sample_set.h"
#include "formats/io/byte_stream.h"

namespace hctr {

/// "bad_records_file" of a Data layer.
struct BadRecordsSection {
  std::string path;
  int64_t most = 100'000;  ///< lines of the file
};
Schema<BadRecordsSection> bad_records_schema();

/// Appends lines that are not in the file yet, so that further passes, evaluations and runs add none twice. Any thread.
class BadRecordsFile {
 public:
  /// Reads the existing lines. Errors: Error(io) when the file cannot be written.
  explicit BadRecordsFile(const BadRecordsSection&);
  /// The object for this path in this process. Errors: as above.
  static std::shared_ptr<BadRecordsFile> open(const BadRecordsSection&);

  /// Warns once when the file is full or cannot be written; reading continues.
  void add(std::vector<BadRecord>, const Log&);

 private:
  /// Sets the number of a record of a text: its line.
  void find_line(BadRecord&);

  BadRecordsSection section_;
  std::mutex mutex_;
  std::unordered_set<std::string> lines_;
  bool ended_ = false;  // a warning has said why
  struct Counted {
    std::string file;
    std::unique_ptr<ByteStream> stream;
    int64_t offset = 0, lines = 0;
  } counted_;  // lines in front of an offset
};

}  // namespace hctr
