// Learns statistics of dense columns from the first rows of a data set, before training.
#pragma once

#include <vector>

#include "core/base/log.h"
#include "formats/data/column_statistics.h"
#include "formats/data/source.h"

namespace hctr {

/// Maximum rows read from the start of a set's files, divided equally among the files.
inline constexpr int64_t kFirstRows = 1 << 20;

/// Whether the section has columns with learned mean and standard deviation.
bool needs_statistics(const DataSection&);

/// Computes the statistics of all learned columns from the first rows of the training data. The result depends only on
/// the files. Logs the number of rows read. Cost: one thread reads up to kFirstRows rows. Errors: those of opening and
/// parsing the data.
std::vector<ColumnStatistics> learn_statistics(const DataSection&, KeyWidth, const Log&);

/// Selects from `known` the statistics that the section needs. `of`: the origin of `known`, for messages. Errors:
/// Error(data) naming the columns that `known` lacks.
std::vector<ColumnStatistics> select_statistics(const DataSection&, const std::vector<ColumnStatistics>& known,
                                                const std::string& of);

/// Statistics with which "standardize" changes nothing. For showing values as they are stored in the data.
std::vector<ColumnStatistics> neutral_statistics(const DataSection&);

}  // namespace hctr
