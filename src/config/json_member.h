// Copies a JSON object with one member added or removed.
#pragma once

#include <string_view>

#include "config/json.h"

namespace hctr {

/// A copy of `object` without the member `name`.
Json without_member(const Json& object, std::string_view name);
/// A copy of `object` with `name` set to `value` as its last member; replaces an existing member `name`.
Json with_member(const Json& object, std::string_view name, Json value);

}  // namespace hctr
