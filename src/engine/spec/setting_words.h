// The names of table settings in messages: config fields, or options of an EmbeddingSet.
#pragma once

#include "core/device/row_budget.h"

namespace hctr {

struct SettingWords {
  const char* row_numbers;    ///< the setting for the number of rows of a table with direct keys
  const char* full;           ///< advice for a full table: alternatives to a higher limit
  const char* smaller_batch;  ///< advice that follows "or": use smaller batches
  const char* hash;           ///< the setting that selects a hash index instead of direct keys
  const char *smaller_rows, *spread;
  const char* host;                 ///< advice that enables rows in host memory
  const char* larger_device;        ///< advice that follows "or": a larger device budget
  const char *disk, *disk_limit;    ///< advice that enables rows on disk; the setting that limits their bytes
  const char *global, *not_global;  ///< an update type that changes every row, and the alternative if rows are on disk
};

/// Selects the words by RowMemoryLimits::of_options.
const SettingWords& setting_words(const RowMemoryLimits&);

}  // namespace hctr
