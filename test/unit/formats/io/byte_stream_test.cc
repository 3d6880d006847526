// A file has the same content with every compression.
#include "formats/io/byte_stream.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <thread>

#include "unit/formats/data/norm_test_files.h"
#include "unit/formats/data/packed_files.h"

namespace hctr::data_test {
namespace {

std::string read_all(ByteStream& stream, size_t piece) {
  std::string text, part(piece, '\0');
  for (;;) {
    const size_t got = stream.read(reinterpret_cast<std::byte*>(part.data()), piece);
    text.append(part, 0, got);
    if (got < piece) return text;
  }
}

std::string repeated_lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += cat("line ", i, "\n");
  return text;
}

struct ByteStreamTest : testing::Test {
  Folder folder;
  const std::string text = repeated_lines(50000);
};

TEST_F(ByteStreamTest, ReadsEqualContentPlainGzipAndZstandard) {
  const fs::path plain = folder / "plain", gzip = folder / "gzip", zstd = folder / "zstd";
  write_text(plain, text);
  write_gzip(gzip, text);
  write_zstd(zstd, text);
  for (const fs::path& path : {plain, gzip, zstd}) {
    EXPECT_EQ(is_packed(path), path != plain);
    EXPECT_EQ(stream_bytes(path), static_cast<int64_t>(fs::file_size(path)));
    const auto stream = open_stream(path);
    EXPECT_EQ(read_all(*stream, 10007), text) << path;
    EXPECT_EQ(stream->consumed(), stream_bytes(path));
    const auto later = open_stream(path);
    later->skip_to(300000);
    EXPECT_EQ(read_all(*later, 1 << 20), text.substr(300000)) << path;
  }
}

TEST_F(ByteStreamTest, ReadsFilesOfSeveralGzipMembersOrZstandardFrames) {
  for (const bool gzip : {true, false}) {
    const fs::path path = folder / (gzip ? "gzip" : "zstd");
    std::string packed;
    for (const std::string& part : {text, std::string(), std::string("the end")}) {
      gzip ? write_gzip(path, part) : write_zstd(path, part);
      packed += read_text(path, "part");
    }
    write_text(path, packed);
    EXPECT_EQ(read_all(*open_stream(path), 4096), text + "the end") << path;
  }
}

TEST_F(ByteStreamTest, NamesATruncatedFile) {
  for (const bool gzip : {true, false}) {
    const fs::path path = folder / (gzip ? "gzip" : "zstd");
    gzip ? write_gzip(path, text) : write_zstd(path, text);
    fs::resize_file(path, fs::file_size(path) - 9);
    EXPECT_SAYS(message_of([&] { read_all(*open_stream(path), 4096); }),
                cat("data: '", path.string(), "' is damaged or truncated after byte "));
  }
}

TEST_F(ByteStreamTest, ReadsPipesPlainOrGzip) {
  write_gzip(folder / "gzip", text);
  for (const std::string& content : {text, read_text(folder / "gzip", "packed text")}) {
    const fs::path pipe = folder / cat("pipe", content.size());
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    EXPECT_TRUE(is_packed(pipe));
    EXPECT_EQ(stream_bytes(pipe), 0);
    std::jthread writer([&] {
      const File file(std::fopen(pipe.c_str(), "wb"));
      std::fwrite(content.data(), 1, content.size(), file.get());
    });
    EXPECT_EQ(read_all(*open_stream(pipe), 65536), text);
  }
}

}  // namespace
}  // namespace hctr::data_test
