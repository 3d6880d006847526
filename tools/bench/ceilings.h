// The peak rates of the device, measured in the same run as the figures that are compared with them.
#pragma once

#include <cstdint>
#include <map>

#include "bench_report.h"
#include "core/device/context.h"

namespace hctr::bench {

struct Ceilings {
  double copy_bytes = 0;  ///< bytes per second read and written by a copy on the device
  /// By floats of a row: rows per second copied from random rows to contiguous ones.
  std::map<int64_t, double> gather_rows;
};

/// Rows are gathered from a table of `table_bytes`.
Ceilings measure_ceilings(Context&, size_t table_bytes, Report&);

}  // namespace hctr::bench
