// The file of a table's access statistics, next to the model file: when a key last occurred, and how often
// (hctr/formats.h).
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "core/base/files.h"
#include "engine/table/table.h"
#include "hctr/formats.h"

namespace hctr {

/// The path of the file that belongs to a sparse model file: "<sparse model file>.marks".
std::filesystem::path access_stats_path(std::filesystem::path sparse_model_file);

/// The header of the file.
struct AccessStatsHead {
  int64_t steps = 0;  ///< counted so far; a row of the last step has last_seen = steps - 1
  int64_t rows = 0;
  bool last_seen = false, occurrences = false;  ///< which fields are recorded; the others are 0
};

/// Writes the statistics of rows in blocks. Errors: Error(io).
class AccessStatsWriter {
 public:
  /// The file outlives the writer.
  AccessStatsWriter(AtomicFile&, const RowPolicy&, int64_t steps);
  void add(const RowBlock&);
  /// After the last block.
  void finish();

 private:
  std::string head_text() const;
  AtomicFile& file_;
  AccessStatsHead head_;
};

/// Calls sink() for all rows of a file, in blocks. Errors: Error(io); Error(data) naming the file when its
/// content is invalid.
AccessStatsHead read_access_stats(
    const std::filesystem::path&,
    const std::function<void(const AccessStatsHead&, std::span<const formats::RowAccess>)>& sink);

}  // namespace hctr
