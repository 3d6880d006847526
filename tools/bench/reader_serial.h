// Measures the serial parts of reading: how fast reading would be if parsing took no time.
#pragma once

#include <string>

#include "formats/data/data_section.h"
#include "reader_bench.h"

namespace hctr::bench {

/// Reports the rates of the single-threaded parts of reading, in bytes of the set: cutting the set into chunks, making
/// batches of parsed chunks, and passing the end of a Norm chunk's records to the next thread. For comparison, also
/// measures the layout of rows on one thread, which normally runs on several threads. The set has `bytes` bytes and one
/// key per slot.
void bench_serial(const std::string& name, const DataSection&, const ReaderCase&, int64_t bytes, Report&);

}  // namespace hctr::bench
