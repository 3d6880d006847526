// Writes a data set: files with equal numbers of records, in order, and a list with the names of the files.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "prepare/write/norm_writer.h"

namespace hctr {

/// Records encoded by one thread. `ends`: the end of each record in `bytes`.
struct EncodedRecords {
  std::vector<std::byte> bytes;
  std::vector<size_t> ends;
  int64_t count() const { return static_cast<int64_t>(ends.size()); }
};

class NormSetWriter {
 public:
  /// `name`: returns the path of file n = 0, 1, ...
  NormSetWriter(NormStyle, int64_t records_per_file, std::function<fs::path(int64_t n)> name);

  /// Appends records [first, first + count).
  void add(const EncodedRecords&, int64_t first, int64_t count);
  /// Finishes the last file, which is otherwise discarded. Returns all files. Call once.
  std::vector<fs::path> finish();
  int64_t records() const { return records_; }

 private:
  void finish_file();

  NormStyle style_;
  int64_t records_per_file_;
  std::function<fs::path(int64_t)> name_;
  std::optional<NormWriter> open_;
  std::vector<fs::path> files_;
  int64_t records_ = 0;
};

}  // namespace hctr
