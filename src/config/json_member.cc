#include "config/json_member.h"

#include <utility>

namespace hctr {

Json without_member(const Json& object, std::string_view name) {
  Json without(Json::Object{});
  for (const auto& [key, value] : *object.object())
    if (key != name) without.set(key, value);
  return without;
}

Json with_member(const Json& object, std::string_view name, Json value) {
  Json with = without_member(object, name);
  with.set(name, std::move(value));
  return with;
}

}  // namespace hctr
