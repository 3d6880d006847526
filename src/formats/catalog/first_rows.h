// Reads the first rows of a set before training: statistics of dense columns.
#pragma once

#include <vector>

#include "core/base/log.h"
#include "formats/data/column_statistics.h"
#include "formats/data/source.h"

namespace hctr {

/// Rows that are read of a set at most, an equal number of each file.
inline constexpr int64_t kFirstRows = 1 << 20;

/// Whether the section has columns whose mean and standard deviation are learned.
bool needs_statistics(const DataSection&);

/// The statistics of these columns, from the first rows of the training data. They depend on the files alone. Log says
/// how many rows were read. Cost: one thread reads kFirstRows rows. Errors: those of opening and parsing the data.
std::vector<ColumnStatistics> learn_statistics(const DataSection&, KeyWidth, const Log&);

/// Those of `known` that the section needs. Errors: Error(data) naming the columns that are missing there. `of`: what
/// they belong to, for the message.
std::vector<ColumnStatistics> select_statistics(const DataSection&, const std::vector<ColumnStatistics>& known,
                                                const std::string& of);

/// Neutral ones, with which "standardize" changes no number: for looking at values as they are stored.
std::vector<ColumnStatistics> neutral_statistics(const DataSection&);

}  // namespace hctr
