// Requests that rank: one user, many items.
#pragma once

#include "serve/infer_request.h"

namespace hctr::serve {

/// Whether the request parameter "ranking" is true. In such a request, an input with a single sample applies to all
/// samples.
bool is_ranking(const InferRequest&);
/// A copy of the request in which an input with a single sample is repeated for each sample of the other inputs.
/// Errors: Refusal for inputs that would need more than 256 MiB.
InferRequest repeat_single_samples(const InferRequest&);

}  // namespace hctr::serve
