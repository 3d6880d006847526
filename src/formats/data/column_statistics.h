// Mean and standard deviation of dense columns, as a model was trained with them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/json.h"

namespace hctr {

/// Statistics of the non-empty values of one column, after the transforms before "standardize".
struct ColumnStatistics {
  std::string column;
  bool log = false;          ///< statistics of ln(1 + max(x, 0))
  double mean = 0, std = 1;  ///< std: sqrt(mean of (x - mean)^2); 1 where that is 0
  int64_t values = 0;        ///< how many there were
};

/// The column's statistics in a list; null when there are none.
const ColumnStatistics* find_statistics(const std::vector<ColumnStatistics>&, const std::string& column, bool log);

/// As manifests of models and checkpoints keep them. Errors of the second: Error(data) naming what is not as expected.
Json to_json(const std::vector<ColumnStatistics>&);
std::vector<ColumnStatistics> column_statistics(const Json&);

}  // namespace hctr
