// Converts text tables to training data: categories to ids, dense values to scaled numbers, rows to a training and an
// evaluation set.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/log.h"
#include "data/norm/norm_set.h"
#include "data/text/criteo_features.h"
#include "prepare/preprocess/dense_statistics.h"
#include "prepare/preprocess/holdout.h"
#include "prepare/preprocess/table_parser.h"
#include "prepare/preprocess/vocabulary.h"
#include "prepare/write/norm_writer.h"

namespace hctr {

struct PreprocessOptions {
  TextTable table = criteo_table();
  std::vector<std::string> inputs, eval_inputs;  ///< in order; "-": the standard input
  fs::path folder;
  int passes = 2;           ///< 1: values are hashed into `range` keys; 2: values are counted first
  int64_t range = 1000000;  ///< one pass: keys of each slot
  int64_t min_count = 1;    ///< two passes: values with fewer occurrences in the training rows are rare
  int64_t modulo = 0;       ///< values are first taken modulo this; 0: as they are
  std::vector<std::pair<size_t, size_t>> crosses;  ///< pairs of categories, by place
  DenseOptions dense;
  Holdout holdout;
  DataFormat format = kNormFormat;  ///< norm, raw or parquet
  bool float_label_dense = true;    ///< of raw: numbers as float32; else int32, not scaled
  int key_bytes = 4;
  Check check = Check::sum;
  int64_t rows_per_file = 500000;
  BadRows bad_rows;
  /// Norm only: slots, keys and dense values as the Criteo reader makes them. Two passes then find rare values.
  std::optional<CriteoStyle> criteo;
  bool force = false;
  int threads = 1;

  /// Columns of codes in front that have keys in slot 0 together, in Norm.
  int64_t wide_keys() const {
    return criteo ? criteo->wide_keys() : as_norm() ? static_cast<int64_t>(crosses.size()) : 0;
  }
  /// Whether crosses share slot 0 and keys count on from slot to slot; else each cross has a slot, and readers add the
  /// offsets.
  bool as_norm() const { return format == kNormFormat; }
  int64_t slots() const {
    return static_cast<int64_t>(criteo ? criteo_columns(*criteo).size() : crosses.size() + table.categories().size());
  }
  std::vector<std::string> slot_names() const;
  /// What a Data layer has as its source: the list of a set, or its file. `stem`: train or val.
  fs::path result(const std::string& stem) const;
};

/// Computed from the training rows, in the order of the record: crosses, then categories.
struct FittedColumns {
  std::vector<DenseColumn> dense;
  std::vector<Vocabulary> vocabularies;  ///< [slots]; none with one pass
  std::vector<int64_t> slot_sizes;       ///< [slots] ids there are
};

struct PreprocessSummary {
  struct Set {
    int64_t rows = 0, positives = 0, files = 0, bad_rows = 0;
  };
  Set train, eval;
  std::vector<int64_t> most_nnz;  ///< [slots] of the record
  FittedColumns fitted;
};

/// Writes the sets. The result does not depend on the number of threads. Memory is constant, but for counted values: 16
/// to 48 bytes for each value and thread that read it. No list exists before all its files do. Errors: Error(usage) for
/// options that do not fit together; Error(data) for a bad row, naming file, line, byte, column and value.
PreprocessSummary preprocess(const PreprocessOptions&, const Log&);

}  // namespace hctr
