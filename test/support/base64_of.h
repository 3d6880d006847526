// Base64 (RFC 4648) of bytes that a test sends in JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hctr::test {

inline std::string base64_of(std::string_view bytes) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t count = bytes.size() - at < 3 ? bytes.size() - at : 3;
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i) bits = bits << 8 | (i < count ? static_cast<uint8_t>(bytes[at + i]) : 0u);
    for (size_t i = 0; i < 4; ++i) text += i <= count ? kLetters[bits >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

}  // namespace hctr::test
