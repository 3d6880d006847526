// What messages call the settings of tables: fields of a config, or options of a set of embeddings.
#pragma once

#include "core/device/row_budget.h"

namespace hctr {

struct SettingWords {
  const char* row_numbers;    ///< how many rows a table with direct keys has
  const char* full;           ///< instead of an error where a table is full
  const char* smaller_batch;  ///< behind "or"
  const char* hash;           ///< an index for direct keys
  const char *smaller_rows, *spread;
  const char* host;                 ///< gives rows memory of the host
  const char* larger_device;        ///< behind "or"
  const char *disk, *disk_limit;    ///< gives rows a disk, and how much of it
  const char *global, *not_global;  ///< that an update changes every row; what to use where rows are on a disk
};

/// By RowMemoryLimits::of_options.
const SettingWords& setting_words(const RowMemoryLimits&);

}  // namespace hctr
