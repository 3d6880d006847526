// What of reading is done by one thread at a time: how fast it would be if parsing cost nothing.
#pragma once

#include <string>

#include "data/data_section.h"
#include "reader_bench.h"

namespace hctr::bench {

/// Rates of the parts that threads cannot share, in bytes of the set, of which there are `bytes`, with one key in each
/// slot: cutting, taking blocks in their order and making batches of them, telling the next thread where the records of
/// a chunk end (Norm); and, for comparison, laying rows out on one thread, which several do.
void bench_serial(const std::string& name, const DataSection&, const ReaderCase&, int64_t bytes, Report&);

}  // namespace hctr::bench
