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
  std::vector<std::string> inputs, eval_inputs;  ///< files in order; "-": standard input
  fs::path folder;
  int passes = 2;           ///< 1: values are hashed to `range` keys; 2: a first pass counts the values
  int64_t range = 1000000;  ///< number of keys per slot; used if passes = 1
  /// Values that occur less often than this in the training rows share the key for rare values. Used if passes = 2.
  int64_t min_count = 1;
  int64_t modulo = 0;                              ///< values are first reduced modulo this number; 0: not reduced
  std::vector<std::pair<size_t, size_t>> crosses;  ///< each cross pairs two categories, given by their indices
  DenseOptions dense;
  Holdout holdout;
  DataFormat format = kNormFormat;  ///< norm, raw or parquet
  bool float_label_dense = true;    ///< for Raw: true means float32 numbers, false means unscaled int32
  int key_bytes = 4;
  Check check = Check::sum;
  int64_t rows_per_file = 500000;
  BadRows bad_rows;
  /// For Norm: if set, slots, keys and dense values are those of the Criteo reader. With two passes, the first pass
  /// determines the rare values.
  std::optional<CriteoStyle> criteo;
  /// Vocabularies and statistics of an earlier run; null: computed from the training rows of this run.
  std::shared_ptr<const FittedColumns> applied;
  std::vector<fs::path> also_read{};  ///< files that must not be overwritten, in addition to the inputs
  bool force = false;
  int threads = 1;
  ShowProgress progress{};  ///< shows the progress of the passes; null: not shown

  /// In Norm: the number of columns whose keys are joined in slot 0, the first slot of a record.
  int64_t wide_keys() const {
    return criteo ? criteo->wide_keys() : as_norm() ? static_cast<int64_t>(crosses.size()) : 0;
  }
  /// Whether the format is Norm. In Norm, all crosses share slot 0, and keys contain the offset of their slot. In other
  /// formats, each cross has its own slot, and readers add the offsets.
  bool as_norm() const { return format == kNormFormat; }
  int64_t slots() const {
    return static_cast<int64_t>(criteo ? criteo_columns(*criteo).size() : crosses.size() + table.categories().size());
  }
  std::vector<std::string> slot_names() const;
  /// The `source` of a Data layer: the list or the file of a set. `stem`: "train" or "val".
  fs::path result(const std::string& stem) const;
};

/// Results computed from the training rows. Slots are in record order: crosses, then categories.
struct FittedColumns {
  std::vector<DenseColumn> dense;
  std::vector<Vocabulary> vocabularies;  ///< [slots]; empty if passes = 1
  std::vector<int64_t> slot_sizes;       ///< [slots] number of ids
};

struct PreprocessSummary {
  struct Set {
    int64_t rows = 0, positives = 0, files = 0, bad_rows = 0;
  };
  Set train, eval;
  std::vector<int64_t> most_nnz;  ///< [slots] maximum number of keys in a record
  FittedColumns fitted;
};

/// Writes the sets. The result does not depend on the number of threads. Memory is constant, plus 16 to 48 bytes per
/// counted value in each thread that has counted this value. Lists are written after all their files. Errors:
/// Error(usage) if options contradict each other; Error(data) for a bad row, with file, line, byte, column and value.
PreprocessSummary preprocess(const PreprocessOptions&, const Log&);

}  // namespace hctr
