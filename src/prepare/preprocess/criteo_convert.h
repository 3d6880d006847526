// Converts Criteo's click logs to Norm data sets with the keys of the Criteo reader. Calls preprocess().
#pragma once

#include <string>
#include <vector>

#include "config/json.h"
#include "core/base/files.h"
#include "core/base/log.h"
#include "formats/text/criteo_features.h"
#include "prepare/bad_rows.h"

namespace hctr {

struct CriteoOptions {
  std::vector<std::string> inputs;  ///< plain, gzip or Zstandard files, in order; "-": standard input, plain or gzip
  fs::path folder;  ///< output folder of train.txt, train.<n>.data and, with holdout, val.txt, val.<n>.data
  CriteoStyle style;
  int64_t rows_per_file = 500000;
  double holdout = 0;  ///< fraction of the rows, at the end, that becomes the evaluation set
  /// Values that occur less often than this in the training rows share one key per column. 0: no such limit.
  int64_t min_count = 0;
  BadRows bad_rows;
  bool force = false;  ///< whether to overwrite an existing set
  int threads = 1;
  ShowProgress progress{};  ///< shows the progress; null: not shown
};

struct CriteoSummary {
  int64_t train_rows = 0, val_rows = 0, bad_rows = 0;
  int64_t train_positives = 0, val_positives = 0;
  int64_t train_files = 0, val_files = 0;
  int64_t distinct_values = 0;  ///< counted only with min_count
};

/// Converts the logs. The result does not depend on the number of threads. Memory is constant without min_count;
/// min_count adds 32 to 64 bytes per distinct value. The options holdout and min_count read the input more than once.
/// Lists are written after all their files. Errors: Error(usage) if options contradict each other; Error(data) for a
/// bad row, with file, line, byte, column and value.
CriteoSummary convert_criteo(const CriteoOptions&, const Log&);

/// The `Data` layer of a config that trains on the result.
Json criteo_data_section(const CriteoOptions&);

}  // namespace hctr
