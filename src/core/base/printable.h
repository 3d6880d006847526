// Text for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace hctr {

/// Replaces control characters other than newline and tab by \xNN. Names and values from files must not move the
/// terminal's cursor or change its settings. Bytes that are not UTF-8 are kept, except the C1 control bytes 0x80 to
/// 0x9f.
std::string printable(std::string_view text);

/// Replaces the control characters that JSON allows in strings (U+007F to U+009F) by \u00NN. The JSON value is
/// unchanged.
std::string printable_json(std::string_view json);

/// Pads the text with trailing blanks to `width` bytes, for tables.
std::string filled_up(const std::string& text, size_t width);

}  // namespace hctr
