// The checksum of a file equals the checksum of its bytes, for any number of reading threads.
#include "core/base/file_checksum.h"

#include <gtest/gtest.h>

#include <random>

#include "config/checked_json.h"
#include "core/base/expect.h"
#include "support/message_of.h"
#include "support/run_program.h"

namespace hctr::test {
namespace {

uint32_t crc_of(const std::string& bytes) { return crc32_of(std::as_bytes(std::span(bytes))); }

TEST(FileChecksumTest, IsThatOfTheBytesInOnePass) {
  const TemporaryFolder folder;
  std::mt19937_64 random(1);
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{16} << 20, (size_t{16} << 20) + 1, (size_t{70} << 20) + 3}) {
    std::string text(bytes, '\0');
    for (size_t i = 0; i < bytes; i += 4096) text[i] = static_cast<char>(random());
    write_file(folder / "a", text);
    const FileChecksum found = checksum_of(folder / "a", "file");
    EXPECT_EQ(found.bytes, static_cast<int64_t>(bytes));
    EXPECT_EQ(found.crc, crc_of(text)) << bytes;
  }
  EXPECT_EQ(crc_text(crc_of("123456789")), "cbf43926") << "the check value of CRC-32";
  EXPECT_EQ(crc_of_text("cbf43926"), crc_of("123456789"));
  for (const char* text : {"", "cbf4392g", "123456789", "-1", " 1"}) EXPECT_FALSE(crc_of_text(text)) << text;
}

TEST(FileChecksumTest, SaysWhatDiffers) {
  const TemporaryFolder folder;
  write_file(folder / "a", "123456789");
  const std::string path = (folder / "a").string();
  expect_checksum(path, "file", {9, 0xcbf43926});
  EXPECT_EQ(message_of(Kind::data, [&] { expect_checksum(path, "file", {8, 0xcbf43926}); }),
            "'" + path + "' is damaged: the file has 9 bytes, but the manifest states 8");
  EXPECT_EQ(message_of(Kind::data, [&] { expect_checksum(path, "file", {9, 1}); }),
            "'" + path + "' is damaged: its checksum is cbf43926, but the manifest states 00000001");
  EXPECT_EQ(message_of(Kind::io, [&] { expect_checksum(folder / "b", "model file", {9, 1}); }),
            "cannot open model file '" + (folder / "b").string() + "': No such file or directory");
}

TEST(CheckedJson, IsNotReadWithAByteChangedOrMissing) {
  const TemporaryFolder folder;
  const fs::path path = folder / "a.json";
  const std::string whole = with_checksum(Json(Json::Object{{"schema", 3}, {"x", "y"}}));
  const auto read = [&](const std::string& text, int64_t schema = 3) {
    write_file(path, text);
    return read_checked_json(path, "file", schema);
  };
  EXPECT_EQ(*read(whole).find("x")->string(), "y");
  EXPECT_NE(message_of(Kind::data, [&] { read(whole, 2); }).find("has schema 3; this version reads 2"),
            std::string::npos);
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] ^= 1;
    EXPECT_NE(message_of(Kind::data, [&] { read(changed); }).find("is damaged"), std::string::npos) << i;
    EXPECT_NE(message_of(Kind::data, [&] { read(whole.substr(0, i)); }).find("is damaged"), std::string::npos) << i;
  }
}

}  // namespace
}  // namespace hctr::test
