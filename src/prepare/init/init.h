// From a table of the user's own to a config that trains: what the columns are, the rows held out for evaluation, a
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
  std::string data;                     ///< text of separated values, plain or compressed, or a Parquet file
  std::string label;                    ///< a column: its name, or its number from 1 on where there is no header
  std::optional<std::string> positive;  ///< the label's text that means 1, or of ratings the least number
  std::string eval;                     ///< evaluation rows; empty: a tenth of `data` is held out
  InitModel model = InitModel::wide_deep;
  std::vector<std::string> leave_out;  ///< columns that are not to be used
  /// Columns whose kind is stated, not guessed; one in both of the first two is used as both.
  std::vector<std::string> categories, numbers, lists;
  std::optional<NumberFormat> number_format;  ///< the notation of all numbers; none: detected for each column
  std::string out;                            ///< the config; empty: only returned
  LogSink log{};                              ///< receives warnings about lists of files; null: they are dropped
  ShowProgress progress{};                    ///< shows the passes over the rows; null: not shown
};

struct InitResult {
  std::string config;               ///< JSON text
  std::vector<std::string> report;  ///< a line for each column and file: the decision, and why
};

using WriteConfig = std::function<void(const std::string& config)>;

/// Reads every row once, and the first rows several times. Without `eval` it writes the rows for training and those
/// held out to two files in the folder of `out`, or into the working folder: which row is held out follows from its
/// bytes alone. All files appear at once when they are complete; existing files are never replaced. `write_config` is
/// called before; if it throws, no file is left. Errors: Error(usage) for a label, positive label or model that does
/// not fit the data, naming one that does, and for data that are not files; Error(io); Error(data) for data that cannot
/// be read or learned from.
InitResult init(const InitOptions&, const WriteConfig& write_config = {});

}  // namespace hctr
