#include "serve/infer_request.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/expect.h"

namespace hctr::serve {
namespace {

constexpr std::string_view kCounts = ".counts";

}  // namespace

InferResponse response_to(const InferRequest& request, Status status) {
  InferResponse response;
  response.status = std::move(status);
  response.model = request.model;
  response.version = request.version;
  response.id = request.id;
  return response;
}

const NamedTensor* find_input(const InferRequest& request, std::string_view name) {
  const auto found = std::ranges::find(request.inputs, name, &NamedTensor::name);
  return found == request.inputs.end() ? nullptr : &*found;
}

std::string counts_name(std::string_view name) { return cat(name, kCounts); }

const NamedTensor* find_counts(const InferRequest& request, std::string_view name) {
  return find_input(request, counts_name(name));
}

std::string_view without_counts(std::string_view name) {
  return name.ends_with(kCounts) ? name.substr(0, name.size() - kCounts.size()) : name;
}

std::optional<int64_t> count_parameter(const Parameters& parameters, const std::string& name) {
  const auto found = parameters.find(name);
  if (found == parameters.end()) return std::nullopt;
  if (const auto* value = std::get_if<int64_t>(&found->second); value && *value >= 0) return *value;
  if (const auto* value = std::get_if<uint64_t>(&found->second))
    if (*value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return static_cast<int64_t>(*value);
  throw Refusal::invalid("parameter '", name, "' must be an integer of at least 0");
}

std::optional<bool> flag_parameter(const Parameters& parameters, const std::string& name) {
  const auto found = parameters.find(name);
  if (found == parameters.end()) return std::nullopt;
  if (const auto* value = std::get_if<bool>(&found->second)) return *value;
  throw Refusal::invalid("parameter '", name, "' must be true or false");
}

std::optional<std::string> text_parameter(const Parameters& parameters, const std::string& name) {
  const auto found = parameters.find(name);
  if (found == parameters.end()) return std::nullopt;
  if (const auto* value = std::get_if<std::string>(&found->second)) return *value;
  throw Refusal::invalid("parameter '", name, "' must be a text");
}

void apply_timeout(InferRequest& request) {
  const auto timeout = count_parameter(request.parameters, "timeout");
  if (!timeout || *timeout == 0) return;
  constexpr int64_t kMost = int64_t{86400} * 1'000'000;
  const auto until = request.arrived + std::chrono::microseconds(std::min(*timeout, kMost));
  request.deadline = request.deadline ? std::min(*request.deadline, until) : until;
}

}  // namespace hctr::serve
