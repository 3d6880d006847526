// Compares SHA-256 and HMAC with the test vectors of FIPS 180-4 (NIST examples) and RFC 4231.
#include "core/base/sha256.h"

#include <gtest/gtest.h>

#include <set>

namespace hctr {
namespace {

TEST(Sha256, HasTheDigestsOfTheStandard) {
  EXPECT_EQ(hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(
      hex(sha256("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrs"
                 "mnopqrstnopqrstu")),
      "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  EXPECT_EQ(hex(sha256(std::string(1000 * 1000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PadsTextsOfEverySizeOfABlockDifferently) {
  std::set<std::string> digests;
  for (size_t size = 0; size <= 130; ++size) digests.insert(hex(sha256(std::string(size, '\0'))));
  EXPECT_EQ(digests.size(), 131u);
}

TEST(Hmac, HasTheCodesOfRfc4231) {
  const auto code = [](const std::string& key, const std::string& text) { return hex(hmac_sha256(key, text)); };
  EXPECT_EQ(code(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(code("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(code(std::string(20, '\xaa'), std::string(50, '\xdd')),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  std::string counted;
  for (char byte = 1; byte <= 25; ++byte) counted += byte;
  EXPECT_EQ(code(counted, std::string(50, '\xcd')), "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
  EXPECT_EQ(code(std::string(20, '\x0c'), "Test With Truncation").substr(0, 32), "a3b6167473100ee06e0c796c2955552b");
  const std::string long_key(131, '\xaa');
  EXPECT_EQ(code(long_key, "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  EXPECT_EQ(
      code(long_key,
           "This is a test using a larger than block-size key and a larger than block-size data. The key needs to "
           "be hashed before being used by the HMAC algorithm."),
      "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2");
}

TEST(Sha256, ComparesWholeTexts) {
  EXPECT_TRUE(equal_in_constant_time("", ""));
  EXPECT_TRUE(equal_in_constant_time("secret", "secret"));
  EXPECT_FALSE(equal_in_constant_time("secret", "secreT"));
  EXPECT_FALSE(equal_in_constant_time("secret", "Secret"));
  EXPECT_FALSE(equal_in_constant_time("secret", "secrets"));
  EXPECT_NE(unpredictable_bytes(), unpredictable_bytes());
}

}  // namespace
}  // namespace hctr
