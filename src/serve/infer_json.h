// Inference requests and responses as JSON, with tensors inside the JSON or as bytes after the JSON.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "serve/infer_request.h"

namespace hctr::serve {

/// `tail`: the bytes after the JSON, for tensors with "binary_data_size". `json` and `tail` are parts of the memory
/// that `owner` owns. Errors: Refusal.
InferRequest read_infer_json(std::string_view json, std::string_view tail, const std::shared_ptr<const void>& owner);

struct InferAnswer {
  std::string body;
  size_t json_bytes = 0;  ///< size of the JSON in `body`; tensors follow
  bool binary = false;    ///< whether tensors may follow the JSON
};
/// Writes the response to a request. `written[i]`: whether output i is already in shared memory.
InferAnswer write_infer_json(const InferRequest&, const InferResponse&, const std::vector<bool>& written);

}  // namespace hctr::serve
