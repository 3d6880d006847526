// The names of table settings in messages: config fields, or options of an EmbeddingSet.
#pragma once

#include "core/device/row_budget.h"

namespace hctr {

struct SettingWords {
  const char* row_numbers;    ///< sets the number of rows of a table with direct keys
  const char* full;           ///< alternative to the error for a full table
  const char* smaller_batch;  ///< continues a sentence after "or"
  const char* hash;           ///< selects a hash index instead of direct keys
  const char *smaller_rows, *spread;
  const char* host;                 ///< enables rows in host memory
  const char* larger_device;        ///< continues a sentence after "or"
  const char *disk, *disk_limit;    ///< enable rows on disk, and limit their bytes
  const char *global, *not_global;  ///< an update type that changes every row, and the alternative if rows are on disk
};

/// Selects the words by RowMemoryLimits::of_options.
const SettingWords& setting_words(const RowMemoryLimits&);

}  // namespace hctr
