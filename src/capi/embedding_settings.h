// Converts the options of C callers to the options of an EmbeddingSet.
#pragma once

#include "hctr/embedding.h"
#include "hctr/huge_ctr.h"

namespace hctr::capi {

/// Errors: Error(usage) naming the table or the feature.
EmbeddingOptions options_of(const hctr_embedding_options&);

}  // namespace hctr::capi
