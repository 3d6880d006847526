// Numbers, digits and hashes of cells, compared with slower implementations.
#include "formats/data/text_values.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

#include "core/base/random.h"

namespace hctr {
namespace {

TEST(TextValues, NumbersAreTheNearestDoubleForEveryFormTheyAreWrittenIn) {
  uint64_t draw = 1;
  for (int i = 0; i < 200000; ++i) {
    draw = mix64(draw);
    char text[64];
    const double magnitude = static_cast<double>(draw >> 11) / static_cast<double>(uint64_t{1} << (draw % 60));
    const double number = (draw & 1 ? -1 : 1) * magnitude;
    const char* const forms[] = {"%.0f", "%.3f", "%.15g", "%.17g", "%e", "%.1f", "%.9g"};
    std::snprintf(text, sizeof text, forms[i % 7], number);
    double read = 0;
    ASSERT_TRUE(read_number(text, read)) << text;
    ASSERT_EQ(read, std::strtod(text, nullptr)) << text;
  }
}

TEST(TextValues, OddFormsOfNumbers) {
  const auto value = [](const std::string& text) {
    double read = -77;
    return read_number(text, read) ? read : -77;
  };
  EXPECT_EQ(value("5."), 5);
  EXPECT_EQ(value(".5"), 0.5);
  EXPECT_EQ(value(" 5 "), 5);
  EXPECT_EQ(value("+5"), 5);
  EXPECT_EQ(value("1e3"), 1000);
  EXPECT_EQ(value("-0.000000000000001"), -1e-15);
  EXPECT_EQ(value("0.0000000000000000000000000001"), 1e-28);
  EXPECT_EQ(value("123456789012345678901234567890"), 123456789012345678901234567890.0);
  for (const char* none : {"", "-", ".", "-.", "+-5", "5x", "x5", "1 2", "1,2", "nan", "inf", "-inf", "1e999", "1e39",
                           "0x10", "--5", "1.2.3"})
    EXPECT_EQ(value(none), -77) << none;
}

TEST(TextValues, EightHexDigitsAreThoseOfTheSlowWayAndNothingElseIs) {
  uint64_t draw = 5;
  for (int i = 0; i < 100000; ++i) {
    draw = mix64(draw);
    char text[16];
    std::snprintf(text, sizeof text, i % 2 ? "%08x" : "%08X", static_cast<unsigned>(draw));
    ASSERT_EQ(eight_hex_digits(text), static_cast<int64_t>(draw & 0xffffffff)) << text;
  }
  for (int place = 0; place < 8; ++place)
    for (int c = 0; c < 256; ++c) {
      std::string text = "12345678";
      text[static_cast<size_t>(place)] = static_cast<char>(c);
      uint64_t slow = 0;
      const bool right = std::isxdigit(c) != 0;
      ASSERT_EQ(eight_hex_digits(text.data()) >= 0, right) << place << " " << c;
      if (right) {
        ASSERT_TRUE(read_hex(text, slow));
        ASSERT_EQ(eight_hex_digits(text.data()), static_cast<int64_t>(slow));
      }
    }
}

TEST(TextValues, HashesOfShortTextsNeverMeetAndFollowTheirDefinition) {
  std::set<uint64_t> seen;
  for (int i = 0; i < 100000; ++i) seen.insert(text_hash(std::to_string(i), 3));
  for (const char* text : {"", "a", "aa", "b", "aaaaaaaa", "aaaaaaaaa"}) seen.insert(text_hash(text, 3));
  EXPECT_EQ(seen.size(), 100006u);
  EXPECT_NE(text_hash("a", 3), text_hash("a", 4));
  uint64_t first, second = 0;
  std::memcpy(&first, "abcdefgh", 8);
  std::memcpy(&second, "ij", 2);
  EXPECT_EQ(text_hash("abcdefghij", 7), mix64(mix64(mix64(7 + 10) ^ first) ^ second));
}

}  // namespace
}  // namespace hctr
