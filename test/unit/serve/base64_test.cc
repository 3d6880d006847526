#include "serve/base64.h"

#include <gtest/gtest.h>

#include "support/base64_of.h"

namespace hctr::serve {
namespace {

using test::base64_of;

TEST(Base64, TextOfBytesReadsAsTheSameBytes) {
  EXPECT_EQ(base64_of(""), "");
  EXPECT_EQ(base64_of("f"), "Zg==");
  EXPECT_EQ(base64_of("fo"), "Zm8=");
  EXPECT_EQ(base64_of("foo"), "Zm9v");
  EXPECT_EQ(base64_of(std::string("\xff\0\xfe", 3)), "/wD+");
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(from_base64(base64_of(bytes)), bytes);
    bytes += static_cast<char>(i * 37);
  }
}

TEST(Base64, OtherTextIsRefused) {
  EXPECT_EQ(from_base64("Zg"), "f") << "without padding";
  for (const char* text : {"Z", "Zg===", "Z*==", "Zg= =", "====", "Zm9vZ", "Zm9v\n"})
    EXPECT_EQ(from_base64(text), std::nullopt) << text;
}

}  // namespace
}  // namespace hctr::serve
