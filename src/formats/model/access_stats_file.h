// The file with a table's access statistics, stored with the model file. For each key, it has the number of occurrences
// and the step of the last one (hctr/formats.h).
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "core/base/files.h"
#include "engine/table/table.h"
#include "hctr/formats.h"

namespace hctr {

/// The path of a model file's access statistics: "<sparse model file>.marks".
std::filesystem::path access_stats_path(std::filesystem::path sparse_model_file);

/// The header of a file of access statistics.
struct AccessStatsHead {
  int64_t steps = 0;  ///< steps counted so far; rows of the latest step have last_seen = steps - 1
  int64_t rows = 0;
  bool last_seen = false, occurrences = false;  ///< which fields are recorded; a field that is not recorded is 0
};

/// Writes access statistics in blocks of rows. Errors: Error(io).
class AccessStatsWriter {
 public:
  /// The file must outlive the writer.
  AccessStatsWriter(AtomicFile&, const RowPolicy&, int64_t steps);
  void add(const RowBlock&);
  /// Completes the file after the last block.
  void finish();

 private:
  std::string head_text() const;
  AtomicFile& file_;
  AccessStatsHead head_;
};

/// Calls sink() with all rows of a file, in blocks. Errors: Error(io); Error(data) naming the file if its content is
/// invalid.
AccessStatsHead read_access_stats(
    const std::filesystem::path&,
    const std::function<void(const AccessStatsHead&, std::span<const formats::RowAccess>)>& sink);

}  // namespace hctr
