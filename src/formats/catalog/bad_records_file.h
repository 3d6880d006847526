// A file with one JSON line per skipped bad record: file, record, offset and cause.
#pragma once

#include <cstdint>
#include <cstdio>
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

/// The "bad_records_file" object of a Data layer.
struct BadRecordsSection {
  std::string path;
  int64_t most = 100'000;  ///< maximum lines of the file
};
Schema<BadRecordsSection> bad_records_schema();

/// Appends a line per bad record. Later epochs, evaluations and runs do not append a line that the file already
/// contains. Several objects and processes may append to one file: before it appends, each locks the file and reads new
/// lines of the others. Thread-safe.
class BadRecordsFile {
 public:
  /// Errors: Error(io) when the file cannot be written.
  explicit BadRecordsFile(const BadRecordsSection&);

  /// Appends the records. If the file is full or cannot be written, warns once and returns normally.
  void add(std::vector<BadRecord>, const Log&);

 private:
  /// Reads the lines that were appended since the last call.
  void read_new_lines(std::FILE*);
  /// Sets the record number of a text record to its line number.
  void find_line(BadRecord&);

  BadRecordsSection section_;
  std::mutex mutex_;
  // lines in the first `known_bytes_` bytes of the file, and lines that this object appended
  std::unordered_set<std::string> lines_;
  long known_bytes_ = 0;
  bool ended_ = false;  // no further lines are written; a warning has given the reason
  struct Counted {
    std::string file;
    std::unique_ptr<ByteStream> stream;
    int64_t offset = 0, lines = 0;
  } counted_;  // cached result: `file` has `lines` lines before `offset`
};

}  // namespace hctr
