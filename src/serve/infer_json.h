// Requests for scores and their answers as JSON, with tensors in it or in bytes behind it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "serve/infer_request.h"

namespace hctr::serve {

/// `tail`: the bytes behind the JSON, for tensors that state "binary_data_size". Both are parts of what `owner` owns.
/// Errors: Refusal.
InferRequest read_infer_json(std::string_view json, std::string_view tail, const std::shared_ptr<const void>& owner);

struct InferAnswer {
  std::string body;
  size_t json_bytes = 0;  ///< the rest are tensors
  bool binary = false;    ///< whether there may be such a rest
};
/// The answer to a request. `written`: of each output, whether it stands in shared memory.
InferAnswer write_infer_json(const InferRequest&, const InferResponse&, const std::vector<bool>& written);

}  // namespace hctr::serve
