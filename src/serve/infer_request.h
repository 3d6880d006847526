// An inference request and its response, independent of the front end.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
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
  std::vector<WantedOutput> outputs{};  ///< empty: all outputs
  Clock::time_point arrived = Clock::now();
  std::optional<Clock::time_point> deadline{};
  std::function<bool()> cancelled{};  ///< null: the request cannot be cancelled
};

struct InferResponse {
  Status status{};
  std::string model{}, version{}, id{};
  std::vector<NamedTensor> outputs{};  ///< in the order of the requested outputs
};

/// Makes a response without outputs.
InferResponse response_to(const InferRequest&, Status);

/// The input of this name; null if the request has none.
const NamedTensor* find_input(const InferRequest&, std::string_view name);
/// "<name>.counts": the input with the number of values in each list of input `name`.
std::string counts_name(std::string_view name);
/// The input counts_name(name); null if the request has none.
const NamedTensor* find_counts(const InferRequest&, std::string_view name);
/// Returns "clicks" for "clicks.counts", and other names unchanged.
std::string_view without_counts(std::string_view name);

/// Receives the response. Called once, by any thread.
using Answer = std::function<void(InferResponse)>;

/// The value of a non-negative integer parameter; none if missing. Errors: Refusal for another type or a negative
/// value.
std::optional<int64_t> count_parameter(const Parameters&, const std::string& name);
std::optional<bool> flag_parameter(const Parameters&, const std::string& name);
std::optional<std::string> text_parameter(const Parameters&, const std::string& name);

/// Sets the deadline from the parameter "timeout" (microseconds), if that is earlier than the current deadline.
void apply_timeout(InferRequest&);

}  // namespace hctr::serve
