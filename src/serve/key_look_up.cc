#include "serve/key_look_up.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/base/expect.h"
#include "serve/batch_results.h"

namespace hctr::serve {
namespace {

constexpr const char *kKeys = "KEYS", *kNumbers = "NUMKEYS", *kVectors = "OUTPUT0";

/// The integers of an input of shape [n] or [1, n].
std::vector<int64_t> list_in(const InferRequest& request, const char* name, bool as_bits) {
  const NamedTensor* const found = find_input(request, name);
  if (!found) throw Refusal::invalid("input '", name, "' is missing: a request for vectors needs 'KEYS' and 'NUMKEYS'");
  expect_whole(*found);
  if (found->shape.size() != 1 && (found->shape.size() != 2 || found->shape[0] != 1))
    throw Refusal::invalid("input '", name, "' has shape ", text_of_shape(found->shape), "; expected [-1] or [1,-1]");
  return integers_of(*found, as_bits);
}

}  // namespace

bool has_key_inputs(const InferRequest& request) {
  return std::ranges::any_of(request.inputs,
                             [](const NamedTensor& input) { return input.name == kKeys || input.name == kNumbers; });
}

std::vector<std::vector<int64_t>> read_keys_of_tables(const InferRequest& request, size_t tables) {
  for (const NamedTensor& input : request.inputs)
    if (input.name != kKeys && input.name != kNumbers)
      throw Refusal::invalid("input '", input.name, "' does not belong to a request for vectors, which has the inputs ",
                             "'KEYS' and 'NUMKEYS'");
  if (request.inputs.size() > 2) throw Refusal::invalid("an input is given twice; expected 'KEYS' and 'NUMKEYS'");
  for (const WantedOutput& output : request.outputs)
    if (output.name != kVectors)
      throw Refusal::invalid("a request for vectors of 'KEYS' has the output 'OUTPUT0', not '", output.name, "'");
  const std::vector<int64_t> all = list_in(request, kKeys, true), numbers = list_in(request, kNumbers, false);
  if (numbers.size() != tables)
    throw Refusal::invalid("input 'NUMKEYS' has ", numbers.size(), " elements; model '", request.model, "' has ",
                           tables, tables == 1 ? " table" : " tables");
  std::vector<std::vector<int64_t>> keys;
  auto at = all.begin();
  for (const int64_t number : numbers) {
    if (number < 0 || number > all.end() - at)
      throw Refusal::invalid("input 'NUMKEYS': element ", keys.size(), " is ", number, ", but only ", all.end() - at,
                             " keys are left in 'KEYS'");
    keys.emplace_back(at, at + number);
    at += number;
  }
  if (at != all.end())
    throw Refusal::invalid("input 'KEYS' has ", all.size(), " keys, but 'NUMKEYS' counts ", at - all.begin());
  return keys;
}

NamedTensor vectors_of_keys(ServedModel& model, const std::vector<std::vector<int64_t>>& keys) {
  int64_t elements = 0;
  for (size_t t = 0; t < keys.size(); ++t) elements += std::ssize(keys[t]) * model.config().embeddings[t].section.dim;
  if (elements * static_cast<int64_t>(sizeof(float)) > kMostResultBytes)
    throw Refusal::invalid("input 'KEYS': the vectors take ", elements * static_cast<int64_t>(sizeof(float)),
                           " bytes, but a response has at most ", kMostResultBytes, ": send fewer keys");
  const auto all = std::make_shared<std::vector<float>>();
  all->reserve(static_cast<size_t>(elements));
  for (const std::vector<float>& vectors : model.look_up(keys)) all->insert(all->end(), vectors.begin(), vectors.end());
  return tensor_of(kVectors, {elements}, all);
}

}  // namespace hctr::serve
