// Makes a config that trains from a user's table: guesses the columns, holds out rows for evaluation, and chooses a
// model.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "formats/data/number_notation.h"
#include "hctr/surroundings.h"
#include "prepare/init/model_layers.h"

namespace hctr {

struct InitOptions {
  std::string data;                     ///< a text of separated values, plain or compressed, or a Parquet file
  std::string label;                    ///< a column's name; without a header, its number from 1
  std::optional<std::string> positive;  ///< the label's text that means 1; for ratings, the minimum number
  std::string eval;                     ///< evaluation rows; empty: a tenth of `data` is held out
  InitModel model = InitModel::wide_deep;
  std::vector<std::string> leave_out;  ///< columns to omit
  /// Columns whose kind the user states. A column in both `categories` and `numbers` is used as both.
  std::vector<std::string> categories, numbers, lists;
  std::optional<NumberFormat> number_format;  ///< the notation of all numbers; none: detected per column
  std::string out;                            ///< path of the config; empty: the config is only returned
  LogSink log{};                              ///< receives warnings about file lists; null: dropped
  ShowProgress progress{};                    ///< shows the progress of the passes; null: not shown
};

struct InitResult {
  std::string config;               ///< JSON text
  std::vector<std::string> report;  ///< a line per column and file, with the decision and the reason
};

using WriteConfig = std::function<void(const std::string& config)>;

/// Reads every row once, and the first rows several times. Without `eval`, splits the rows into a training file and an
/// evaluation file, in the folder of `out` or the working folder. The split does not depend on labels or chance: see
/// HoldOut. All files appear together when they are complete. Existing files are never replaced. `write_config` is
/// called before the files appear; if it throws, no file is left. Errors: Error(usage) if the label, the positive label
/// or the model does not fit the data (the message suggests one that fits), and if `data` is not a file; Error(io);
/// Error(data) for data that cannot be read, or from which no model can learn.
InitResult init(const InitOptions&, const WriteConfig& write_config = {});

}  // namespace hctr
