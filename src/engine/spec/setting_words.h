// The names of table settings in messages: config fields, or options of an EmbeddingSet.
#pragma once

#include "core/device/row_budget.h"

namespace hctr {

struct SettingWords {
  const char* row_numbers;    ///< the setting for the number of rows of a table with direct keys
  const char* full;           ///< advice for a full table, which names alternatives to a higher limit
  const char* smaller_batch;  ///< advice to use smaller batches; messages put "or" before it
  const char* hash;           ///< the setting that selects a hash index instead of direct keys
  const char *smaller_rows, *spread;
  const char* host;           ///< advice that enables rows in host memory
  const char* larger_device;  ///< advice to raise the device budget; messages put "or" before it
  /// disk: advice that enables rows on disk; disk_limit: the setting that limits the bytes on disk
  const char *disk, *disk_limit;
  /// global: an update type that changes every row; not_global: the update type to use if rows are on disk
  const char *global, *not_global;
};

/// Selects the words by RowMemoryLimits::of_options.
const SettingWords& setting_words(const RowMemoryLimits&);

}  // namespace hctr
