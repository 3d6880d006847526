// Edits one member of a JSON value.
#pragma once

#include <string>

#include "config/json.h"
#include "config/problems.h"

namespace hctr::test {

/// Returns `root` with the member at `pointer` ("/fc_param/num_output") set to `value`. Without a value, removes the
/// member.
inline Json edited(const Json& root, const std::string& pointer, const Json* value) {
  const size_t end = pointer.find('/', 1);
  const std::string key = pointer.substr(1, end == pointer.npos ? end : end - 1),
                    rest = end == pointer.npos ? "" : pointer.substr(end);
  const auto change = [&](const Json& member, auto&& keep) {
    if (!rest.empty())
      keep(edited(member, rest, value));
    else if (value)
      keep(*value);
  };
  if (const auto* array = root.array()) {
    Json out(Json::Array{});
    for (size_t i = 0; i < array->size(); ++i) {
      if (std::to_string(i) == key)
        change((*array)[i], [&](Json changed) { out.add(std::move(changed)); });
      else
        out.add((*array)[i]);
    }
    return out;
  }
  Json out(Json::Object{});
  bool found = false;
  for (const auto& [name, member] : root.object() ? *root.object() : Json::Object{}) {
    if (name != key)
      out.set(name, member);
    else
      change(member, [&, n = name](Json changed) { out.set(n, std::move(changed)); });
    found = found || name == key;
  }
  if (!found) change(Json(Json::Object{}), [&](Json changed) { out.set(key, std::move(changed)); });
  return out;
}
inline Json edited(const Json& root, const std::string& pointer, const Json& value) {
  return edited(root, pointer, &value);
}
inline Json without(const Json& root, const std::string& pointer) { return edited(root, pointer, nullptr); }

/// Returns "\n  /pointer: message" for each entry; empty if there are no entries.
inline std::string listed(const std::vector<Problems::Entry>& entries) {
  std::string text;
  for (const Problems::Entry& entry : entries) text += "\n  " + entry.pointer + ": " + entry.message;
  return text;
}

}  // namespace hctr::test
