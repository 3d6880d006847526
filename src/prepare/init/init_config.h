// Makes the config for a table whose columns are known.
#pragma once

#include <string>
#include <vector>

#include "prepare/init/column_guess.h"
#include "prepare/init/init.h"
#include "prepare/init/label_guess.h"
#include "prepare/init/text_layout.h"

namespace hctr {

/// The decisions that determine the config.
struct InitPlan {
  InitModel model = InitModel::wide_deep;
  std::string train, eval;           ///< paths of the files
  std::optional<TextLayout> layout;  ///< empty for Parquet files
  std::vector<std::string> missing;  ///< texts that mean a missing value
  bool trim = false;                 ///< for Parquet: whether blanks around texts are ignored
  bool skip_bad_rows = false;        ///< whether the files contain bad rows, which training must skip
  /// Number format of the whole table. If empty, numbers are plain, except in columns with their own format.
  std::optional<NumberFormat> number_format;
  LabelChoice label;
  std::vector<ColumnGuess> columns;       ///< columns without the label, in table order
  std::vector<int64_t> distinct;          ///< [columns] number of distinct values
  int64_t train_rows = 0, eval_rows = 0;  ///< eval_rows: 0 if unknown
  /// for din. history: a list column; item: the column whose single values occur in these lists
  std::optional<size_t> history, item;
  bool item_numbers = false;  ///< whether the items are integers, which are used as keys directly
};

/// The length of training, and the batch size.
struct InitSchedule {
  int64_t batch = 0, epochs = 0, steps_per_epoch = 0;
  bool rare_keys = false;  ///< whether there are so many rare keys that training them would only fit noise
};
InitSchedule schedule_of(const InitPlan&);

/// The config as JSON text. Errors: Error(usage) if the model needs columns that the table lacks.
std::string init_config(const InitPlan&);

}  // namespace hctr
