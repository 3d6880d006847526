// What of reading is done by one thread at a time: how fast it would be if parsing cost nothing.
#pragma once

#include <string>

#include "data/clause.h"
#include "reader_bench.h"

namespace hctr::bench {

/// Rates of the parts between which threads cannot share a set, in bytes of the set (`bytes` of them, `rows` rows of one key a slot): cutting; cutting, handing chunks over
/// in order and gathering batches of blocks that no time was spent on; and laying rows out on one thread, which several do.
void bench_serial(const std::string& name, const DataClause&, const ReaderCase&, int64_t bytes, Report&);

}  // namespace hctr::bench
