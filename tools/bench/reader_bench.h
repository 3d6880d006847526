// Measures how fast Criteo-shaped rows of every format are read from the page cache into batches.
#pragma once

#include <cstdint>

#include "bench_report.h"

namespace hctr::bench {

struct ReaderCase {
  int64_t rows = 1000000;  ///< rows of one label, 13 integers and 26 categories, without missing values
  int64_t batch = 16384;
  int threads = 1;      ///< parser threads
  int ranks = 1;        ///< number of ranks; only the first rank's reader is measured
  int64_t shuffle = 0;  ///< rows of a shuffle window; 0: no shuffling
  int passes = 5;       ///< number of passes; the median is reported
  std::string only;     ///< measures only formats whose name contains this word
  bool serial = false;  ///< also measures the serial parts (reader_serial.h)
  std::string config;   ///< reads the training data of this config instead of generated rows; empty: generated rows
};

/// Writes the same rows in every format into a temporary folder, reads each format several times, and checks the number
/// of samples. With a config, reads its training data instead.
void bench_reader(const ReaderCase&, Report&);

}  // namespace hctr::bench
