// The config for a table whose columns are known.
#pragma once

#include <string>
#include <vector>

#include "prepare/init/column_guess.h"
#include "prepare/init/init.h"
#include "prepare/init/label_guess.h"
#include "prepare/init/text_layout.h"

namespace hctr {

/// Input of a config.
struct InitPlan {
  InitModel model = InitModel::wide_deep;
  std::string train, eval;                    ///< files
  std::optional<TextLayout> layout;           ///< none: Parquet
  std::vector<std::string> missing;           ///< texts that mean a missing value
  bool trim = false;                          ///< Parquet: blanks around texts are not part of them
  bool skip_bad_rows = false;                 ///< the files still have them
  std::optional<NumberFormat> number_format;  ///< format of all numbers in texts; none: plain, or per column
  LabelChoice label;
  std::vector<ColumnGuess> columns;       ///< without the label, in the order of the table
  std::vector<int64_t> distinct;          ///< [columns] different values
  int64_t train_rows = 0, eval_rows = 0;  ///< eval_rows 0: not known
  std::optional<size_t> history, item;    ///< din: a list column, and the column that shares its values
  bool item_numbers = false;              ///< whether the items are integers, which are keys themselves
};

/// The shares of a run that are its epochs and its batches.
struct InitSchedule {
  int64_t batch = 0, epochs = 0, steps_per_epoch = 0;
  bool rare_keys = false;  ///< whether so many keys are rare that they would only learn noise
};
InitSchedule schedule_of(const InitPlan&);

/// The config as JSON text. Errors: Error(usage) for a model that needs missing columns.
std::string init_config(const InitPlan&);

}  // namespace hctr
