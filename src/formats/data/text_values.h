// Parses and hashes the cells of a text.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace hctr {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The text without leading and trailing spaces and tabs.
std::string_view without_blanks(std::string_view text);
/// The text of a number without a leading plus sign.
inline std::string_view without_plus(std::string_view text) {
  return text.size() > 1 && text[0] == '+' && text[1] != '-' ? text.substr(1) : text;
}
/// Sets `value` to the double nearest to the number. Returns false if the text is not a number, or not a finite float.
/// Ignores surrounding blanks.
bool read_number(std::string_view text, double& value);
/// Reads a decimal integer that is the whole text.
bool read_integer(std::string_view text, int64_t& value);
/// Reads a key in [-2^63, 2^64 - 1]; a key n of 2^63 or more is stored as n - 2^64. Zeros after a decimal point are
/// allowed.
bool read_key(std::string_view text, int64_t& key);
/// Reads a hexadecimal integer, without prefix, that is the whole text.
bool read_hex(std::string_view text, uint64_t& value);

/// Hashes bytes: h = mix64(seed + length), then h = mix64(h ^ word) for each 8-byte little-endian word; the last word
/// is padded with zeros. mix64 is in core/base/random.h. Texts of equal length up to 8 bytes never collide, because
/// mix64 is a bijection.
uint64_t text_hash(std::string_view text, uint64_t seed);

/// Fast path of read_hex() for exactly 8 digits. Returns the value, or -1 if some character is not a hex digit.
inline int64_t eight_hex_digits(const char* text) {
  uint64_t word;
  std::memcpy(&word, text, sizeof word);
  // Checks all 8 bytes in parallel. Digits are 0x30 to 0x39, letters 0x41 to 0x46 and 0x61 to 0x66. Sums stay below
  // 0x100, so no byte carries into the next.
  constexpr uint64_t ones = 0x0101010101010101, highs = ones * 0x80;
  if (word & highs) return -1;
  const uint64_t lower = word | ones * 0x20;  // converts letters to lower case; digits are unchanged
  const uint64_t digit = (word + ones * (0x80 - 0x30)) & ~(word + ones * (0x80 - 0x3a)) & highs;  // 0x30 <= byte < 0x3a
  const uint64_t letter =
      (lower + ones * (0x80 - 0x61)) & ~(lower + ones * (0x80 - 0x67)) & highs;  // 0x61 <= byte < 0x67
  if ((digit | letter) != highs) return -1;
  uint64_t nibbles = (word & ones * 0x0f) + (letter >> 7) * 9;
  nibbles = (nibbles << 4 | nibbles >> 8) &
            0x00ff00ff00ff00ff;  // the first character is the lowest byte but the highest nibble
  nibbles = (nibbles << 8 | nibbles >> 16) & 0x0000ffff0000ffff;
  return static_cast<int64_t>((nibbles << 16 | nibbles >> 32) & 0xffffffff);
}

}  // namespace hctr
