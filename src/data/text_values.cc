#include "data/text_values.h"

#include <charconv>
#include <cmath>
#include <cstring>

#include "base/random.h"

namespace hctr {
namespace {

constexpr double kPowersOfTen[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};

/// Up to 15 digits with at most one point: a whole number and a power of ten, both exact in a double, so that their quotient is the
/// nearest one. W. Clinger, "How to Read Floating Point Numbers Accurately", PLDI 1990.
bool read_short_number(const char* p, const char* end, double& value) {
  const bool negative = p < end && *p == '-';
  p += negative;
  if (end - p > 16 || p == end) return false;
  uint64_t digits = 0;
  const char* point = nullptr;
  int count = 0;
  for (; p < end; ++p) {
    const unsigned digit = static_cast<unsigned>(*p) - '0';
    if (digit <= 9) {
      digits = digits * 10 + digit;
      ++count;
    } else if (*p == '.' && !point) {
      point = p;
    } else {
      return false;
    }
  }
  if (count == 0 || count > 15) return false;
  value = static_cast<double>(digits);
  if (point) value /= kPowersOfTen[end - point - 1];
  if (negative) value = -value;
  return true;
}

template <class T>
bool read_whole(std::string_view text, T& value, int base) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

bool read_number(std::string_view text, double& value) {
  if (read_short_number(text.data(), text.data() + text.size(), value)) return true;
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  if (text.starts_with('+') && text.size() > 1 && text[1] != '-') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(static_cast<float>(value));
}

bool read_integer(std::string_view text, int64_t& value) { return read_whole(text, value, 10); }
bool read_hex(std::string_view text, uint64_t& value) { return !text.starts_with('-') && read_whole(text, value, 16); }

int64_t eight_hex_digits(const char* text) {
  uint64_t word;
  std::memcpy(&word, text, sizeof word);
  // Each byte alone: digits have 0x30 to 0x39, letters 0x41 to 0x46 and 0x61 to 0x66. Sums stay below 0x100, so no byte disturbs its neighbour.
  constexpr uint64_t ones = 0x0101010101010101;
  if (word & (ones * 0x80)) return -1;
  const uint64_t lower = word | (ones * 0x20);                                                               // letters in lower case; digits stay
  const uint64_t digit = ((word + ones * (0x80 - 0x30)) & ~(word + ones * (0x80 - 0x3a))) & (ones * 0x80);    // 0x30 <= byte < 0x3a
  const uint64_t letter = ((lower + ones * (0x80 - 0x61)) & ~(lower + ones * (0x80 - 0x67))) & (ones * 0x80);  // 0x61 <= byte < 0x67
  if ((digit | letter) != ones * 0x80) return -1;
  uint64_t nibbles = (word & (ones * 0x0f)) + (letter >> 7) * 9;
  // The first character is the highest nibble and the lowest byte.
  nibbles = (nibbles << 4 | nibbles >> 8) & 0x00ff00ff00ff00ff;
  nibbles = (nibbles << 8 | nibbles >> 16) & 0x0000ffff0000ffff;
  return static_cast<int64_t>((nibbles << 16 | nibbles >> 32) & 0xffffffff);
}

uint64_t text_hash(std::string_view text, uint64_t seed) {
  uint64_t hash = mix64(seed + text.size());
  const char* p = text.data();
  size_t left = text.size();
  for (; left >= 8; p += 8, left -= 8) {
    uint64_t word;
    std::memcpy(&word, p, sizeof word);
    hash = mix64(hash ^ word);
  }
  if (left > 0) {
    uint64_t word = 0;
    std::memcpy(&word, p, left);
    hash = mix64(hash ^ word);
  }
  return hash;
}

}  // namespace hctr
