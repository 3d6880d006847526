#include "report/config_differences.h"

#include <algorithm>
#include <map>

#include "core/base/expect.h"

namespace hctr {
namespace {

/// The name of an element of an array: the first top if the element is a layer, otherwise the index.
std::string element_name(const Json& element, size_t index) {
  const Json* top = element.find("top");
  if (top && top->array() && !top->array()->empty()) top = &(*top->array())[0];
  if (top && top->string()) return *top->string();
  const Json* type = element.find("type");
  return type && type->string() && *type->string() == "Data" ? "data" : std::to_string(index);
}

struct Leaves {
  std::vector<std::string> order;
  std::map<std::string, std::string> values;
};

void collect(const Json& value, const std::string& place, Leaves& leaves) {
  const auto is_object = [](const Json& element) { return element.object() != nullptr; };
  if (value.object() && !value.object()->empty()) {
    for (const auto& [name, member] : *value.object()) collect(member, cat(place, "/", name), leaves);
  } else if (value.array() && std::any_of(value.array()->begin(), value.array()->end(), is_object)) {
    for (size_t i = 0; i < value.array()->size(); ++i)
      collect((*value.array())[i], cat(place, "/", element_name((*value.array())[i], i)), leaves);
  } else {
    if (leaves.values.emplace(place, value.text()).second) leaves.order.push_back(place);
  }
}

}  // namespace

std::vector<ConfigDifference> config_differences(const std::vector<Json>& configs) {
  std::vector<Leaves> all(configs.size());
  std::vector<std::string> places;
  std::map<std::string, bool> seen;
  for (size_t c = 0; c < configs.size(); ++c) {
    if (configs[c].is_null()) continue;
    collect(configs[c], "", all[c]);
    for (const std::string& place : all[c].order)
      if (!std::exchange(seen[place], true)) places.push_back(place);
  }
  std::vector<ConfigDifference> differences;
  for (const std::string& place : places) {
    ConfigDifference one{place, {}};
    const std::string* first = nullptr;
    bool differs = false;
    static const std::string kNone;
    for (size_t c = 0; c < configs.size(); ++c) {
      const auto found = all[c].values.find(place);
      one.values.push_back(found == all[c].values.end() ? "" : found->second);
      if (configs[c].is_null()) continue;
      const std::string& value = found == all[c].values.end() ? kNone : found->second;
      if (first && *first != value) differs = true;
      first = found == all[c].values.end() ? &kNone : &found->second;
    }
    if (differs) differences.push_back(std::move(one));
  }
  return differences;
}

}  // namespace hctr
