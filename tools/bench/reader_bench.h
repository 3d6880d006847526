// What reading costs: every format of Criteo-shaped rows, from the page cache into batch slots.
#pragma once

#include <cstdint>

#include "report.h"

namespace hctr::bench {

struct ReaderCase {
  int64_t rows = 1000000;  ///< of one label, 13 integers and 26 categories, all filled
  int64_t batch = 16384;
  int threads = 1;      ///< that parse
  int passes = 5;       ///< whose median counts
  std::string only;     ///< formats whose name holds this word
  bool serial = false;  ///< also what of it one thread does at a time
};

/// Writes the same rows in every format into a temporary folder, reads each again and again, and checks that every
/// sample came.
void bench_reader(const ReaderCase&, Report&);

}  // namespace hctr::bench
