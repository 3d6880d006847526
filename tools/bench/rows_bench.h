// The rows of an embedding table: lookup and sum, sort by row, backward and update.
#pragma once

#include "ceilings.h"
#include "core/base/dtype.h"

namespace hctr::bench {

struct RowsCase {
  int64_t dim;
  int log_rows;  ///< the table has 2^log_rows rows
  int64_t samples = 65536, slots = 26;
  DType storage = DType::f32;  ///< type of the vectors; states are f32
};

void bench_rows(Context&, const RowsCase&, const Ceilings&, Report&);

}  // namespace hctr::bench
