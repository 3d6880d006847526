// Random rows for benchmarks of tables that are too large to train or to read from files.
#pragma once

#include "core/base/thread_pool.h"
#include "hctr/store.h"

namespace hctr {

/// Passes the rows of StoreTableSource::random, in the order of their keys. All threads make rows.
void make_random_rows(const StoreTableSource&, const StoreRowSink&, ThreadPool&);

}  // namespace hctr
