// Converts text tables to training data: categories to ids, dense values to scaled numbers, and rows to a training and
// an evaluation set.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/files.h"
#include "core/base/log.h"
#include "formats/norm/norm_set.h"
#include "formats/text/criteo_features.h"
#include "prepare/preprocess/dense_statistics.h"
#include "prepare/preprocess/holdout.h"
#include "prepare/preprocess/table_parser.h"
#include "prepare/preprocess/vocabulary.h"
#include "prepare/write/norm_writer.h"

namespace hctr {

struct FittedColumns;

struct PreprocessOptions {
  TextTable table = criteo_table();
  std::vector<std::string> inputs, eval_inputs;  ///< files in order; "-": the standard input
  fs::path folder;
  int passes = 2;           ///< 1: values are hashed to `range` keys; 2: values are counted in a first pass
  int64_t range = 1000000;  ///< one pass only: keys per slot
  int64_t min_count = 1;    ///< two passes only: values with fewer occurrences in the training rows are rare
  int64_t modulo = 0;       ///< values are reduced modulo this first; 0: not reduced
  std::vector<std::pair<size_t, size_t>> crosses;  ///< pairs of categories, by index
  DenseOptions dense;
  Holdout holdout;
  DataFormat format = kNormFormat;  ///< norm, raw or parquet
  bool float_label_dense = true;    ///< raw only: numbers are float32; else unscaled int32
  int key_bytes = 4;
  Check check = Check::sum;
  int64_t rows_per_file = 500000;
  BadRows bad_rows;
  /// Norm only: slots, keys and dense values are those of the Criteo reader. Two passes then determine the rare values.
  std::optional<CriteoStyle> criteo;
  /// Vocabularies and statistics of earlier rows; null: those of these training rows.
  std::shared_ptr<const FittedColumns> applied;
  std::vector<fs::path> also_read{};  ///< files besides the inputs that this result must not replace
  bool force = false;
  int threads = 1;
  ShowProgress progress{};  ///< shows the passes over the rows; null: not shown

  /// Number of leading code columns whose keys share slot 0, in Norm.
  int64_t wide_keys() const {
    return criteo ? criteo->wide_keys() : as_norm() ? static_cast<int64_t>(crosses.size()) : 0;
  }
  /// Whether crosses share slot 0 and key ranges of successive slots follow each other. Otherwise each cross has its
  /// own slot, and readers add the offsets.
  bool as_norm() const { return format == kNormFormat; }
  int64_t slots() const {
    return static_cast<int64_t>(criteo ? criteo_columns(*criteo).size() : crosses.size() + table.categories().size());
  }
  std::vector<std::string> slot_names() const;
  /// Returns the `source` of a Data layer: the list of a set, or its file. `stem`: train or val.
  fs::path result(const std::string& stem) const;
};

/// Results computed from the training rows, in record order: crosses, then categories.
struct FittedColumns {
  std::vector<DenseColumn> dense;
  std::vector<Vocabulary> vocabularies;  ///< [slots]; empty with one pass
  std::vector<int64_t> slot_sizes;       ///< [slots] number of ids
};

struct PreprocessSummary {
  struct Set {
    int64_t rows = 0, positives = 0, files = 0, bad_rows = 0;
  };
  Set train, eval;
  std::vector<int64_t> most_nnz;  ///< [slots] largest number of keys in a record
  FittedColumns fitted;
};

/// Writes the sets. The result does not depend on the number of threads. Memory is constant, except for counted values:
/// 16 to 48 bytes for each value and each thread that read it. A list is written after all its files. Errors:
/// Error(usage) for options that do not fit together; Error(data) for a bad row, naming file, line, byte, column and
/// value.
PreprocessSummary preprocess(const PreprocessOptions&, const Log&);

}  // namespace hctr
