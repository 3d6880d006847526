// Control characters never reach a terminal.
#include "base/printable.h"

#include <gtest/gtest.h>

#include <string>

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

}  // namespace
}  // namespace hctr::test
