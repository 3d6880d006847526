// What the chip can do at best, measured in the same run as everything that is held against it.
#pragma once

#include <cstdint>
#include <map>

#include "device/context.h"
#include "report.h"

namespace hctr::bench {

struct Ceilings {
  double copy_bytes = 0;  ///< bytes per second read and written by a copy on the device
  std::map<int64_t, double>
      gather_rows;  ///< by floats of a row: rows per second copied from random places to dense ones
};

/// Rows from a table of `table_bytes`.
Ceilings measure_ceilings(Context&, size_t table_bytes, Report&);

}  // namespace hctr::bench
