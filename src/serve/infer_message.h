// Inference requests and responses as Protocol Buffers messages.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "serve/infer_request.h"

namespace hctr::serve {

/// Parses a ModelInferRequest. `owner`: owner of `bytes`. Errors: Refusal.
InferRequest read_infer_message(std::string_view bytes, const std::shared_ptr<const void>& owner);

/// Writes a ModelInferResponse, with tensors as raw bytes. `wanted`: the outputs of the request; may be empty if none
/// is in shared memory. `written[i]`: whether output i is already in shared memory; outputs beyond the end of `written`
/// are not.
std::string write_infer_message(std::span<const WantedOutput> wanted, const InferResponse&,
                                const std::vector<bool>& written);

}  // namespace hctr::serve
