// Text for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace hctr {

/// The text with \xNN in place of control characters other than newline and tab: names and values from files must not
/// move the cursor of a terminal or change its settings. Bytes that are not UTF-8 stay, unless they are control
/// characters of a terminal of 8-bit characters.
std::string printable(std::string_view text);

/// JSON with \u00NN in place of the control characters that JSON allows in strings (U+007F to U+009F): the same value.
std::string printable_json(std::string_view json);

/// The text with blanks after it up to `width` bytes, for tables.
std::string filled_up(const std::string& text, size_t width);

}  // namespace hctr
