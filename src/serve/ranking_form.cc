#include "serve/ranking_form.h"

#include <algorithm>
#include <memory>
#include <string>

#include "core/base/expect.h"
#include "serve/request_samples.h"

namespace hctr::serve {
namespace {

constexpr size_t kMostBytes = size_t{256} << 20;

/// The input whose first dimension is the number of samples: the counts of the input's lists if the request has them,
/// otherwise `values` itself.
const NamedTensor& leading(const InferRequest& request, const NamedTensor& values) {
  const NamedTensor* const counts = find_counts(request, values.name);
  return counts ? *counts : values;
}

int64_t samples_of(const InferRequest& request, const NamedTensor& input) {
  const NamedTensor& leads = leading(request, input);
  return leads.shape.empty() ? 0 : leads.shape[0];
}

/// `left`: bytes that the inputs of the request may still take.
NamedTensor repeated(const NamedTensor& input, int64_t times, size_t& left) {
  if (input.data.size() > left / static_cast<size_t>(times))
    throw Refusal::invalid("input '", input.name, "' has ", input.data.size(), " bytes, repeated for ", times,
                           " samples: expected at most ", kMostBytes, " bytes for all repeated inputs together");
  const size_t bytes = input.data.size() * static_cast<size_t>(times);
  left -= bytes;
  const auto data = std::make_shared<std::string>();
  data->reserve(bytes);
  for (int64_t i = 0; i < times; ++i) data->append(input.data);
  NamedTensor all = input;
  all.shape[0] *= times;
  all.data = *data;
  all.owner = data;
  return all;
}

}  // namespace

bool is_ranking(const InferRequest& request) { return flag_parameter(request.parameters, "ranking").value_or(false); }

InferRequest repeat_single_samples(const InferRequest& request) {
  int64_t samples = 1;
  for (const NamedTensor& input : request.inputs) {
    expect_whole(input);
    const int64_t own = samples_of(request, input);
    expect_few_samples(leading(request, input), own);
    samples = std::max(samples, own);
  }
  InferRequest all = request;
  all.parameters.erase("ranking");
  if (samples == 1) return all;
  size_t left = kMostBytes;
  for (size_t i = 0; i < request.inputs.size(); ++i)
    if (!request.inputs[i].shape.empty() && samples_of(request, request.inputs[i]) == 1)
      all.inputs[i] = repeated(request.inputs[i], samples, left);
  return all;
}

}  // namespace hctr::serve
