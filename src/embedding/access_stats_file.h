// What a table has noted of its rows, when their keys came last and how often, in a file beside the model file
// (hctr/formats.h).
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "base/files.h"
#include "embedding/table.h"
#include "hctr/formats.h"

namespace hctr {

/// Where it stands: "<sparse model file>.marks".
std::filesystem::path access_stats_path(std::filesystem::path sparse_model_file);

/// What the head of such a file says.
struct AccessStatsHead {
  int64_t steps = 0;  ///< that the marks have counted: a row of the last one has last_seen = steps - 1
  int64_t rows = 0;
  bool last_seen = false, occurrences = false;  ///< which marks there are; the others are 0
};

/// Writes the marks of rows that come in blocks. The file appears complete, with commit(), or not at all. Errors:
/// Error(io).
class AccessStatsWriter {
 public:
  AccessStatsWriter(std::filesystem::path, const RowPolicy&, int64_t steps);
  void add(const RowBlock&);
  void commit();

 private:
  std::string head_text() const;
  AtomicFile file_;
  AccessStatsHead head_;
};

/// Calls sink() for all marks of a file, block by block. Errors: Error(io); Error(data) naming the file when its
/// content cannot be.
AccessStatsHead read_access_stats(
    const std::filesystem::path&,
    const std::function<void(const AccessStatsHead&, std::span<const formats::RowAccess>)>& sink);

}  // namespace hctr
