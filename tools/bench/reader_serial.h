// The serial parts of reading: how fast it would be if parsing took no time.
#pragma once

#include <string>

#include "formats/data/data_section.h"
#include "reader_bench.h"

namespace hctr::bench {

/// Reports the rates of the parts that run on one thread at a time, in bytes of the set, which has `bytes` and one key
/// per slot: cutting into chunks, making batches of parsed chunks, and passing the end of a Norm chunk's records to the
/// next thread. For comparison also the layout of rows on one thread, which otherwise runs on several.
void bench_serial(const std::string& name, const DataSection&, const ReaderCase&, int64_t bytes, Report&);

}  // namespace hctr::bench
