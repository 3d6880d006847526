// Requests that rank: one user, many items.
#pragma once

#include "serve/infer_request.h"

namespace hctr::serve {

/// Whether the request parameter "ranking" is true: an input with one sample then stands for all samples.
bool is_ranking(const InferRequest&);
/// The same request, where inputs with one sample are repeated for each sample of the others. Errors: Refusal for
/// inputs that would need more than 256 MiB.
InferRequest repeat_single_samples(const InferRequest&);

}  // namespace hctr::serve
