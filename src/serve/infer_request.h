// One request for scores and its answer, whatever front end it came by.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "serve/named_tensor.h"
#include "serve/serve_status.h"

namespace hctr::serve {

using Clock = std::chrono::steady_clock;

struct WantedOutput {
  std::string name;
  Parameters parameters{};
};

struct InferRequest {
  std::string model, version{}, id{};
  Parameters parameters{};
  std::vector<NamedTensor> inputs{};
  std::vector<WantedOutput> outputs{};  ///< empty: all
  Clock::time_point arrived = Clock::now();
  std::optional<Clock::time_point> deadline{};
  std::function<bool()> cancelled{};  ///< null: nobody can cancel it
};

struct InferResponse {
  Status status{};
  std::string model{}, version{}, id{};
  std::vector<NamedTensor> outputs{};  ///< in the order of the request
};

/// An answer without outputs.
InferResponse response_to(const InferRequest&, Status);

/// Called once, by any thread.
using Answer = std::function<void(InferResponse)>;

/// The value of an integer parameter that is not negative. Errors: Refusal for another type.
std::optional<int64_t> count_parameter(const Parameters&, const std::string& name);
std::optional<bool> flag_parameter(const Parameters&, const std::string& name);
std::optional<std::string> text_parameter(const Parameters&, const std::string& name);

/// Takes "timeout" (microseconds) as a deadline where that is earlier.
void apply_timeout(InferRequest&);

}  // namespace hctr::serve
