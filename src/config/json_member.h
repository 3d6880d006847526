// Copies of JSON objects with another member.
#pragma once

#include <string_view>

#include "config/json.h"

namespace hctr {

/// `object` without the member of this name.
Json without_member(const Json& object, std::string_view name);
/// The same, and behind all others a member of this name with this value.
Json with_member(const Json& object, std::string_view name, Json value);

}  // namespace hctr
