// The names of table settings in messages: fields of a config, or options of an EmbeddingSet.
#pragma once

#include "core/device/row_budget.h"

namespace hctr {

struct SettingWords {
  const char* row_numbers;    ///< number of rows of a table with direct keys
  const char* full;           ///< the alternative to an error if a table is full
  const char* smaller_batch;  ///< behind "or"
  const char* hash;           ///< an index for direct keys
  const char *smaller_rows, *spread;
  const char* host;                 ///< allows rows in host memory
  const char* larger_device;        ///< behind "or"
  const char *disk, *disk_limit;    ///< allows rows on disk, and limits their bytes
  const char *global, *not_global;  ///< an update that changes every row; its alternative if rows are on disk
};

/// Chooses by RowMemoryLimits::of_options.
const SettingWords& setting_words(const RowMemoryLimits&);

}  // namespace hctr
