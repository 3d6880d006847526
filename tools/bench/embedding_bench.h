// Measures embedding tables through EmbeddingSet: forward, backward with update, and whole steps.
#pragma once

#include "bench_report.h"
#include "core/device/context.h"

namespace hctr::bench {

/// Times EmbeddingSet on tables of Criteo's sizes with power-law keys, on one table with uniform keys, on bags of ten
/// keys, and on unpooled keys. `only`: runs cases whose name contains this word.
void bench_embeddings(Device, int threads, bool quick, const std::string& only, Report&);

}  // namespace hctr::bench
