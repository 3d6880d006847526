// Control characters never reach a terminal.
#include "core/base/printable.h"

#include <gtest/gtest.h>

#include <string>

#include "config/json.h"

namespace hctr::test {
namespace {

TEST(Printable, ShowsControlCharactersAsNumbers) {
  EXPECT_EQ(printable("plain text,\n\ttwo lines; gr\xc3\xbc\xc3\x9f"), "plain text,\n\ttwo lines; gr\xc3\xbc\xc3\x9f");
  EXPECT_EQ(printable("\x1b[2J\r\x7f"), "\\x1b[2J\\x0d\\x7f");
  EXPECT_EQ(printable(std::string("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J, \xc2\xa0"),
            "\\x9b2J, \xc2\xa0")
      << "CSI in one character, and a space";
  EXPECT_EQ(printable("\xc2"), "\xc2");
}

TEST(Printable, ShowsControlCharactersOfEightBits) {
  EXPECT_EQ(printable("a\x9b\x32J"), "a\\x9b2J") << "CSI of a terminal without UTF-8";
  EXPECT_EQ(printable("\xe0\x82\x9b"), "\xe0\\x82\\x9b") << "a character in more bytes than it needs";
  EXPECT_EQ(printable("\xe2\x82\xac \xf0\x9f\x98\x80 \xe4\xf6"), "\xe2\x82\xac \xf0\x9f\x98\x80 \xe4\xf6")
      << "characters whose bytes are the same numbers, and Latin-1";
}

TEST(Printable, KeepsJsonTheSameValue) {
  const Json value(Json::Object{{"name\x7f", "\x1b[31m \xc2\x9b \xc3\xbc\n"}, {"n", 1}});
  const std::string shown = printable_json(value.text(2));
  for (const char c : shown) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 || c == '\n');
  EXPECT_EQ(shown.find('\x7f'), shown.npos);
  EXPECT_EQ(shown.find("\xc2\x9b"), shown.npos);
  EXPECT_NE(shown.find("\\u009b \xc3\xbc"), shown.npos) << shown;
  EXPECT_EQ(Json::parse(shown, "shown").text(), value.text());
}

}  // namespace
}  // namespace hctr::test
