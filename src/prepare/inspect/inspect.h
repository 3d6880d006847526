// Inspects data files: summarizes their content, and checks every record against a config.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "config/json.h"
#include "core/base/files.h"
#include "core/base/log.h"
#include "core/base/moments.h"
#include "formats/catalog/format_table.h"
#include "formats/data/data_section.h"
#include "prepare/inspect/distinct_count.h"

namespace hctr {

/// Statistics of one label or dense column.
struct NumberSummary {
  int64_t count = 0, not_finite = 0, zeros_and_ones = 0;
  NumberStatistics finite;  ///< statistics of the finite values

  /// Adds values of a column. Replaces values that are not finite by NaN.
  void add(std::span<double> values);
  void merge(const NumberSummary&);
};

struct SlotSummary {
  int64_t least_nnz = std::numeric_limits<int64_t>::max(), most_nnz = 0, keys = 0;
  /// occurrences of keys whose values are not in the slot's vocabulary; none if the slot has no vocabulary
  std::optional<int64_t> unlisted;
  int64_t least_key = std::numeric_limits<int64_t>::max(), most_key = std::numeric_limits<int64_t>::min();
  DistinctCount distinct;

  void merge(SlotSummary& other);
};

/// A data file, with facts from its header if it has one.
struct InspectedFile {
  fs::path path;
  int64_t bytes = 0, records = 0, bad_records = 0;
  /// Whether no header states the number of records. `records` is then an estimate until the file has been read to its
  /// end.
  bool is_estimate = false;
  std::string facts{};  ///< for example "Norm, check sums, 2 labels, ..."
};

struct Inspection {
  std::vector<InspectedFile> files;
  int64_t samples = 0;  ///< good records
  std::vector<NumberSummary> labels, dense;
  std::vector<SlotSummary> slots;
  std::vector<std::string> problems;  ///< the first problems, each with file, record and byte
  int64_t problem_count = 0;
  std::vector<std::string> head;  ///< the first samples
};

struct InspectOptions {
  std::optional<DataSection> section;  ///< limits of the records; optional for Norm and Parquet files
  bool binary_labels = false;          ///< whether a label other than 0 or 1 is a problem
  KeyWidth key_width = KeyWidth::detect;
  int64_t head = 0, most_problems = 20;
  /// reading stops after the chunk that reaches this limit
  int64_t most_bytes_of_file = std::numeric_limits<int64_t>::max();
  /// maximum number of distinct keys that are counted exactly
  int64_t exact_bound = 1 << 20;
  int threads = 1;
  ShowProgress progress{};  ///< shows the progress; null: not shown
};

/// Whether all labels must be 0 or 1: every loss of the config is a binary cross entropy without sample weights.
bool wants_binary_labels(const Json& config);
/// The key width of Norm files, from the solver section.
KeyWidth key_width_of(const Json& config);

/// The data files of a path: the file itself, the files of a list, or the mapping of a feature specification. Errors:
/// those of read_file_list().
std::vector<fs::path> data_files(const fs::path& path, const InspectOptions&, const Log&);

/// Reads every record of the files. With a section, checks that keys are within the limits of their slots and
/// slot_size_array, and that labels and dense values are finite. Collects problems, and continues after each problem if
/// possible. The result does not depend on the number of threads. Errors: Error(io); Error(usage) for files that cannot
/// be read without a section.
Inspection inspect(const std::vector<fs::path>& files, const InspectOptions&);

}  // namespace hctr
