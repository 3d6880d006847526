#include "base/printable.h"

namespace hctr {

std::string printable(std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string shown;
  shown.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    const bool is_c1 = byte == 0xc2 && next >= 0x80 && next < 0xa0;  // U+0080 to U+009F in UTF-8
    const bool is_control = (byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f || is_c1;
    if (!is_control) {
      shown += text[i];
      continue;
    }
    const unsigned char code = is_c1 ? next : byte;
    shown += "\\x";
    shown += kDigits[code >> 4];
    shown += kDigits[code & 15];
    i += is_c1;
  }
  return shown;
}

std::string filled_up(const std::string& text, size_t width) {
  return text + std::string(width > text.size() ? width - text.size() : 0, ' ');
}

}  // namespace hctr
