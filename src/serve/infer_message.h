// Requests for scores and their answers as messages of Protocol Buffers.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "serve/infer_request.h"

namespace hctr::serve {

/// ModelInferRequest. `owner`: of the bytes. Errors: Refusal.
InferRequest read_infer_message(std::string_view bytes, const std::shared_ptr<const void>& owner);

/// ModelInferResponse, with tensors as raw bytes. `written`: of each output, whether it stands in shared memory.
std::string write_infer_message(const InferRequest&, const InferResponse&, const std::vector<bool>& written);

}  // namespace hctr::serve
