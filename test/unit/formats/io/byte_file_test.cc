// Data files that change while they are read.
#include "formats/io/byte_file.h"

#include <gtest/gtest.h>

#include <array>

#include "core/base/expect.h"
#include "support/message_of.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

TEST(ByteFile, SaysWhatItHadBeforeItWasCut) {
  const TemporaryFolder folder;
  const fs::path path = folder / "a.data";
  write_text(path, "0123456789");
  std::array<std::byte, 8> to{};
  const auto read = [&](const ByteFile& file) {
    return message_of(Kind::data, [&] { file.read_at(5, to.data(), to.size()); });
  };
  const ByteFile before(path);
  fs::resize_file(path, 7);
  EXPECT_EQ(read(before),
            cat("'", path.string(),
                "': ends at byte 7, but had 10 bytes when opened: the file was truncated while being read"));
  EXPECT_EQ(read(ByteFile(path)), cat("'", path.string(),
                                      "': ends at byte 7, the size when opened, but had more bytes when its "
                                      "records were counted: the file was truncated while being read"));
}

}  // namespace
}  // namespace hctr::test
