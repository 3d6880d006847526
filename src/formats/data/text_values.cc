#include "formats/data/text_values.h"

#include <charconv>
#include <cmath>
#include <cstring>

#include "core/base/random.h"

namespace hctr {
namespace {

constexpr double kPowersOfTen[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};

/// Fast path for up to 15 digits with at most one point. The digits and the power of ten are exact doubles, so their
/// quotient is the nearest double. W. Clinger, "How to Read Floating Point Numbers Accurately", PLDI 1990.
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

std::string_view without_blanks(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
  return text;
}

bool read_number(std::string_view text, double& value) {
  if (read_short_number(text.data(), text.data() + text.size(), value)) return true;
  text = without_plus(without_blanks(text));
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(static_cast<float>(value));
}

bool read_integer(std::string_view text, int64_t& value) { return read_whole(text, value, 10); }
bool read_key(std::string_view text, int64_t& key) {
  if (read_integer(text, key)) return true;
  if (const size_t point = text.find('.'); point != text.npos && point > 0) {  // reads 17.0 as 17
    if (text.find_first_not_of('0', point + 1) != text.npos) return false;
    text = text.substr(0, point);
    if (read_integer(text, key)) return true;
  }
  uint64_t bits = 0;
  if (text.starts_with('-') || !read_whole(text, bits, 10)) return false;
  key = static_cast<int64_t>(bits);
  return true;
}
bool read_hex(std::string_view text, uint64_t& value) { return !text.starts_with('-') && read_whole(text, value, 16); }

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
