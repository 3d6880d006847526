// Base64 (RFC 4648) of bytes in JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hctr::serve {

/// Decodes a text; returns none if it is invalid. The padding at the end may be missing.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace hctr::serve
