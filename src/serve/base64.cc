#include "serve/base64.h"

#include <cstdint>

namespace hctr::serve {

std::optional<std::string> from_base64(std::string_view text) {
  for (int padding = 0; padding < 2 && text.ends_with('='); ++padding) text.remove_suffix(1);
  if (text.size() % 4 == 1) return std::nullopt;
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  int held = 0;
  for (const char letter : text) {
    const size_t value = kLetters.find(letter);
    if (value == kLetters.npos) return std::nullopt;
    bits = (bits << 6 | static_cast<uint32_t>(value)) & 0xffff;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes += static_cast<char>(bits >> held & 255);
  }
  return bytes;
}

}  // namespace hctr::serve
