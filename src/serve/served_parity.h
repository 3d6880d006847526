// Checks that a service returns the same scores as `predict`.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "infer/sample_arrays.h"
#include "serve/model_outputs.h"
#include "serve/service.h"

namespace hctr::serve {

/// A request in the packed form, with binary tensors after its JSON.
struct PackedRequest {
  std::string body;
  size_t json_bytes = 0;
};
/// `outputs`: the outputs to request; empty: the model's defaults.
PackedRequest packed_request(const SampleArrays&, int64_t first, int64_t count,
                             std::span<const ServedOutput* const> outputs = {});

struct Parity {
  int64_t samples = 0, requests = 0, different = 0;  ///< different: number of differing scores
  double largest = 0;                                ///< largest difference
};
/// Sends the evaluation samples of a model's config to the service, in requests of random sizes from several clients,
/// and compares the responses with scores of the same samples computed in one batch. Errors: those of reading;
/// Error(io), also if a response is an error.
Parity compare_with_offline(const Service&, const std::string& model);

}  // namespace hctr::serve
