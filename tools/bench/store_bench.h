// Look-ups in levels of a store beside the databases' own programs.
#pragma once

#include <cstdint>
#include <string>

#include "bench_report.h"

namespace hctr::bench {

struct StoreCase {
  std::string redis;    ///< addresses with commas; empty: none
  std::string rocksdb;  ///< a folder for databases, which are removed at the end; empty: none
  int64_t rows = 1000000, dim = 128, batch = 4096;
  int threads = 2;
  double seconds = 5;
};

/// Rows that are found by a second, beside redis-benchmark's pipelined GET and db_bench's multireadrandom with values
/// of the same size, where they are installed. Checks every row.
void bench_store(const StoreCase&, Report&);

}  // namespace hctr::bench
