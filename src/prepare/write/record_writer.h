// Writers of records: Norm or Parquet files with a list, or one Raw file.
#pragma once

#include <memory>
#include <vector>

#include "core/base/files.h"
#include "prepare/write/norm_set_writer.h"
#include "prepare/write/parquet_writer.h"

namespace hctr {

class RecordWriter {
 public:
  virtual ~RecordWriter() = default;
  virtual void add(const EncodedRecords&) = 0;
  /// Finishes the set and gives its files their final names. Returns the number of data files. Call once. Without this
  /// call, only complete data files remain, and no list. A set without records has no files.
  virtual int64_t finish() = 0;
};

/// Writes <folder>/<stem>.<n>.data and <folder>/<stem>.txt.
std::unique_ptr<RecordWriter> norm_record_writer(const fs::path& folder, const std::string& stem, const NormStyle&,
                                                 int64_t records_per_file);
/// Writes <folder>/part_<n>.parquet, _metadata.json and _file_list.txt.
std::unique_ptr<RecordWriter> parquet_record_writer(const fs::path& folder, const ParquetStyle&,
                                                    int64_t records_per_file);
inline constexpr const char* kParquetList = "_file_list.txt";
/// Writes <folder>/<stem>.bin.
std::unique_ptr<RecordWriter> raw_record_writer(const fs::path& folder, const std::string& stem);

/// Checks that none of the inputs would be overwritten by writers of `stem` in `folder`. Errors: Error(usage).
void expect_records_replace_no_input(const fs::path& folder, const std::string& stem,
                                     const std::vector<fs::path>& inputs);

/// Removes the results of an earlier run, so that no list names files of two runs. Errors: Error(usage) if a result
/// exists and `force` is false.
void remove_older_results(const std::vector<fs::path>& results, bool force);

}  // namespace hctr
