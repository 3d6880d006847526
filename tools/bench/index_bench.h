// The hash index: keys per second found, and found or inserted, rows given out included.
#pragma once

#include "ceilings.h"

namespace hctr::bench {

struct IndexCase {
  int log_places;  ///< the table has 2^log_places places
  double load;     ///< share of them in use
  int log_batch;   ///< keys of a batch
};

void bench_index(Context&, const IndexCase&, const Ceilings&, Report&);

}  // namespace hctr::bench
