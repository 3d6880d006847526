// Whether a service gives the scores that predict gives.
#pragma once

#include <cstdint>
#include <string>

#include "infer/sample_arrays.h"
#include "serve/service.h"

namespace hctr::serve {

/// A request in the packed form, with binary tensors behind its JSON.
struct PackedRequest {
  std::string body;
  size_t json_bytes = 0;
};
PackedRequest packed_request(const SampleArrays&, int64_t first, int64_t count);

struct Parity {
  int64_t samples = 0, requests = 0, different = 0;  ///< different: scores
  double largest = 0;                                ///< of the differences
};
/// Sends the evaluation samples of a model's config to the service, in pieces of random sizes by several clients, and
/// compares the answers with scores of the same samples computed at once. Errors: those of reading; Error(io), also
/// where an answer is an error.
Parity compare_with_offline(const Service&, const std::string& model);

}  // namespace hctr::serve
