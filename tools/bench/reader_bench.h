// The speed of reading Criteo-shaped rows of every format, from the page cache into batches.
#pragma once

#include <cstdint>

#include "bench_report.h"

namespace hctr::bench {

struct ReaderCase {
  int64_t rows = 1000000;  ///< of one label, 13 integers and 26 categories, none missing
  int64_t batch = 16384;
  int threads = 1;      ///< parser threads
  int ranks = 1;        ///< of several the first one's reader is measured
  int64_t shuffle = 0;  ///< rows of a window; 0: the order of the set
  int passes = 5;       ///< the median is reported
  std::string only;     ///< only formats whose name contains this word
  bool serial = false;  ///< also the serial parts (reader_serial.h)
  std::string config;   ///< a config whose training data are read in place of rows that are written; empty: none
};

/// Writes the same rows in every format into a temporary folder, reads each several times, and checks the number of
/// samples; or reads the training data of a config.
void bench_reader(const ReaderCase&, Report&);

}  // namespace hctr::bench
