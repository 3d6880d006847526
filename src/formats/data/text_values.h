// Numbers and hashes of the cells of a text.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace hctr {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The text without the spaces and tabs around it.
std::string_view without_blanks(std::string_view text);
/// A number without the plus sign before it.
inline std::string_view without_plus(std::string_view text) {
  return text.size() > 1 && text[0] == '+' && text[1] != '-' ? text.substr(1) : text;
}
/// The double nearest to the number. False when the text is not a number, or no finite float. Ignores blanks around it.
bool read_number(std::string_view text, double& value);
/// Reads an integer that is the whole of `text`: decimal, or hexadecimal without a prefix.
bool read_integer(std::string_view text, int64_t& value);
/// The same of any 64-bit number: -2^63 to 2^63 - 1, or unsigned up to 2^64 - 1, of which n - 2^64 has the same bits.
/// Zeros after a point do not matter.
bool read_key(std::string_view text, int64_t& key);
bool read_hex(std::string_view text, uint64_t& value);

/// A hash of bytes: h = mix64(seed + length), then h = mix64(h ^ word) for each eight bytes as a little-endian word,
/// the last one filled up with zeros. mix64 is in core/base/random.h. A bijection of the word for texts of one length
/// up to eight: those never collide.
uint64_t text_hash(std::string_view text, uint64_t seed);

/// As read_hex() for the common case of exactly eight digits: their value, or -1 when one is not a digit.
inline int64_t eight_hex_digits(const char* text) {
  uint64_t word;
  std::memcpy(&word, text, sizeof word);
  // Each byte alone: digits are 0x30 to 0x39, letters 0x41 to 0x46 and 0x61 to 0x66. Sums stay below 0x100, so bytes
  // do not carry into each other.
  constexpr uint64_t ones = 0x0101010101010101, highs = ones * 0x80;
  if (word & highs) return -1;
  const uint64_t lower = word | ones * 0x20;  // letters in lower case; digits stay
  const uint64_t digit = (word + ones * (0x80 - 0x30)) & ~(word + ones * (0x80 - 0x3a)) & highs;  // 0x30 <= byte < 0x3a
  const uint64_t letter =
      (lower + ones * (0x80 - 0x61)) & ~(lower + ones * (0x80 - 0x67)) & highs;  // 0x61 <= byte < 0x67
  if ((digit | letter) != highs) return -1;
  uint64_t nibbles = (word & ones * 0x0f) + (letter >> 7) * 9;
  nibbles = (nibbles << 4 | nibbles >> 8) &
            0x00ff00ff00ff00ff;  // the first character is the lowest byte and the highest nibble
  nibbles = (nibbles << 8 | nibbles >> 16) & 0x0000ffff0000ffff;
  return static_cast<int64_t>((nibbles << 16 | nibbles >> 32) & 0xffffffff);
}

}  // namespace hctr
