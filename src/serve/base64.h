// Base64 (RFC 4648) of bytes in JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hctr::serve {

/// None for invalid text. The padding at the end may be missing.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace hctr::serve
