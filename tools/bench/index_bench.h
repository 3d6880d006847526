// Measures the hash index: the rate at which keys are found, and the rate at which keys are found or inserted.
#pragma once

#include "ceilings.h"

namespace hctr::bench {

struct IndexCase {
  int log_entries;  ///< the index has 2^log_entries entries
  double load;      ///< fraction of entries in use
  int log_batch;    ///< a batch has 2^log_batch keys
};

void bench_index(Context&, const IndexCase&, const Ceilings&, Report&);

}  // namespace hctr::bench
