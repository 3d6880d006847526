// Measures the device's peak rates, in the same run as the figures that are compared with them.
#pragma once

#include <cstdint>
#include <map>

#include "bench_report.h"
#include "core/device/context.h"

namespace hctr::bench {

struct Ceilings {
  double copy_bytes = 0;  ///< bytes per second, read plus written, of a copy on the device
  /// By row width in floats: rows per second copied from random positions to contiguous memory.
  std::map<int64_t, double> gather_rows;
};

/// `table_bytes`: size of the table that rows are gathered from.
Ceilings measure_ceilings(Context&, size_t table_bytes, Report&);

}  // namespace hctr::bench
