// Converts Criteo's click logs to Norm data sets whose keys are those of the Criteo reader. A thin layer over
// preprocess().
#pragma once

#include <string>
#include <vector>

#include "base/files.h"
#include "base/log.h"
#include "config/json.h"
#include "data/text/criteo_features.h"
#include "prepare/bad_rows.h"

namespace hctr {

struct CriteoOptions {
  std::vector<std::string>
      inputs;       ///< files, plain, gzip or Zstandard, in order; "-": the standard input, plain or gzip
  fs::path folder;  ///< gets train.txt, train.<n>.data and, with holdout, val.txt, val.<n>.data
  CriteoStyle style;
  int64_t rows_per_file = 500000;
  double holdout = 0;     ///< share of the rows, the last ones, that become the evaluation set
  int64_t min_count = 0;  ///< values with fewer occurrences in the training rows share one key per column; 0: off
  BadRows bad_rows;
  bool force = false;  ///< overwrite a set that is there
  int threads = 1;
};

struct CriteoSummary {
  int64_t train_rows = 0, val_rows = 0, bad_rows = 0;
  int64_t train_positives = 0, val_positives = 0;
  int64_t train_files = 0, val_files = 0;
  int64_t distinct_values = 0;  ///< counted for min_count
};

/// Converts. The result does not depend on the number of threads. Memory is constant, but for 32 to 64 bytes per
/// distinct value with min_count. Holdout and min_count read the input more than once. No list exists before all its
/// files do. Errors: Error(usage) for options that do not fit together; Error(data) for a bad row, naming file, line,
/// byte, column and value.
CriteoSummary convert_criteo(const CriteoOptions&, const Log&);

/// The `Data` layer for a config that trains on the result.
Json criteo_data_section(const CriteoOptions&);

}  // namespace hctr
