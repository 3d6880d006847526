// Measures look-ups in the levels of a store, and compares them with the databases' own benchmark programs.
#pragma once

#include <cstdint>
#include <string>

#include "bench_report.h"

namespace hctr::bench {

struct StoreCase {
  std::string redis;    ///< comma-separated Redis addresses; empty: none
  std::string rocksdb;  ///< a folder for temporary databases; empty: none
  std::string files;    ///< a folder for temporary files; empty: none
  int64_t rows = 1000000, dim = 128, batch = 4096;
  int threads = 2;
  double seconds = 5;
};

/// Reports the rows found per second. For files, also reports the rate of loading and the rate of direct writes. If
/// redis-benchmark or db_bench are installed, compares with their pipelined GET and multireadrandom, with values of the
/// same size. Checks every row.
void bench_store(const StoreCase&, Report&);

}  // namespace hctr::bench
