#include "core/base/printable.h"

namespace hctr {
namespace {

/// Length in bytes of the UTF-8 character at the start of `text`. 0 if the bytes are not valid UTF-8.
size_t character_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(i < text.size() ? text[i] : 0); };
  const auto is_next = [&](size_t i) { return byte(i) >= 0x80 && byte(i) < 0xc0; };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return is_next(1) ? 2 : 0;
  if (first >= 0xe0 && first < 0xf0) {  // 0xe0 and a byte below 0xa0 are an overlong encoding
    const bool longer = first == 0xe0 && byte(1) < 0xa0;
    return !longer && is_next(1) && is_next(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first < 0xf5) {
    const bool longer = first == 0xf0 && byte(1) < 0x90;
    return !longer && is_next(1) && is_next(2) && is_next(3) ? 4 : 0;
  }
  return 0;
}

/// Replaces each control character by `escape` and two hexadecimal digits.
std::string masked(std::string_view text, std::string_view escape) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const size_t length = character_length(text);
    const size_t bytes = length == 0 ? 1 : length;
    const auto first = static_cast<unsigned char>(text[0]);
    const unsigned char code = length == 2 && first == 0xc2 ? static_cast<unsigned char>(text[1]) : first;
    const bool is_c0 = code < 0x20 && code != '\n' && code != '\t';
    const bool is_c1 = code >= 0x7f && code < 0xa0;  // DEL, and U+0080 to U+009F in UTF-8 or as single bytes
    if (is_c0 || is_c1) {
      shown += escape;
      shown += kDigits[code >> 4];
      shown += kDigits[code & 15];
    } else {
      shown += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return shown;
}

}  // namespace

std::string printable(std::string_view text) { return masked(text, "\\x"); }

std::string printable_json(std::string_view json) { return masked(json, "\\u00"); }

std::string filled_up(const std::string& text, size_t width) {
  return text + std::string(width > text.size() ? width - text.size() : 0, ' ');
}

}  // namespace hctr
