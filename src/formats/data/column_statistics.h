// Mean and standard deviation of dense columns, saved with the model that was trained with them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/json.h"

namespace hctr {

/// Statistics of one column's non-empty values, after the transforms that precede "standardize".
struct ColumnStatistics {
  std::string column;
  bool log = false;          ///< true: statistics of ln(1 + max(x, 0))
  double mean = 0, std = 1;  ///< std = sqrt(mean of (x - mean)^2), or 1 if that is 0
  int64_t values = 0;        ///< number of values
};

/// The statistics of `column` in the list; null if absent.
const ColumnStatistics* find_statistics(const std::vector<ColumnStatistics>&, const std::string& column, bool log);

/// JSON form in the manifests of models and checkpoints. Errors of parsing: Error(data) naming the unexpected value.
Json to_json(const std::vector<ColumnStatistics>&);
std::vector<ColumnStatistics> column_statistics(const Json&);

}  // namespace hctr
