// What an EmbeddingSet is asked for, in the engine's terms.
#pragma once

#include "engine/spec/table_spec.h"
#include "hctr/embedding.h"

namespace hctr {

/// Errors: Error(usage) naming table, option and what it may be.
ops::Optimizer rule_of(const EmbeddingTableOptions&);
/// The spec of a table, but for the sizes of batches, with so many features. Errors: likewise.
TableSpec spec_of(const EmbeddingTableOptions&, int64_t features);

}  // namespace hctr
