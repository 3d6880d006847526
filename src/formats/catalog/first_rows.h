// Reads the first rows of a set before training: statistics of dense columns.
#pragma once

#include <vector>

#include "core/base/log.h"
#include "formats/data/column_statistics.h"
#include "formats/data/source.h"

namespace hctr {

/// Maximum rows read of a set, an equal number of each file.
inline constexpr int64_t kFirstRows = 1 << 20;

/// Whether the section has columns whose mean and standard deviation are learned.
bool needs_statistics(const DataSection&);

/// The statistics of these columns, from the first rows of the training data. They depend on the files alone. Logs the
/// number of rows read. Cost: one thread reads kFirstRows rows. Errors: those of opening and parsing the data.
std::vector<ColumnStatistics> learn_statistics(const DataSection&, KeyWidth, const Log&);

/// The statistics in `known` that the section needs. Errors: Error(data) naming the columns missing there. `of`: their
/// origin, for the message.
std::vector<ColumnStatistics> select_statistics(const DataSection&, const std::vector<ColumnStatistics>& known,
                                                const std::string& of);

/// Neutral statistics, with which "standardize" changes no number: for showing values as they are stored.
std::vector<ColumnStatistics> neutral_statistics(const DataSection&);

}  // namespace hctr
