// Text for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace hctr {

/// The text with \xNN in place of control characters other than newline and tab: names and values from files must not
/// move the cursor of a terminal or change its settings.
std::string printable(std::string_view text);

/// The text with blanks behind it up to `width` bytes, for tables.
std::string filled_up(const std::string& text, size_t width);

}  // namespace hctr
