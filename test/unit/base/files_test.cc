#include "base/files.h"

#include "support/message_of.h"
#include "support/program.h"

namespace hctr::test {
namespace {

size_t entries(const fs::path& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(AtomicFile, LeavesNothingWithoutCommit) {
  const TemporaryFolder folder;
  {
    AtomicFile file(folder / "a");
    file.write("half of it");
    EXPECT_EQ(entries(folder.path()), 1u);
    EXPECT_FALSE(fs::exists(folder / "a")) << "an incomplete file never has the final name";
  }
  EXPECT_EQ(entries(folder.path()), 0u);
}

TEST(AtomicFile, KeepsTheOldFileUntilCommit) {
  const TemporaryFolder folder;
  write_text(folder / "a", "old");
  { AtomicFile(folder / "a").write("new"); }
  EXPECT_EQ(read_text(folder / "a", ""), "old");
  AtomicFile file(folder / "a");
  file.write("new");
  file.commit();
  EXPECT_EQ(read_text(folder / "a", ""), "new");
  EXPECT_EQ(entries(folder.path()), 1u);
}

TEST(AtomicFile, WritesCountsIntoItsHeaderAndContinuesAtTheEnd) {
  const TemporaryFolder folder;
  AtomicFile file(folder / "deep/er/a");
  file.write("0000 body");
  file.write_at(0, "1234", 4);
  file.write(" end");
  file.commit();
  EXPECT_EQ(read_text(folder / "deep/er/a", ""), "1234 body end");
}

TEST(AtomicFile, MovedFromOwnsNothing) {
  const TemporaryFolder folder;
  AtomicFile file(folder / "a");
  AtomicFile moved = std::move(file);
  moved.write("x");
  moved.commit();
  EXPECT_EQ(read_text(folder / "a", ""), "x");
}

TEST(Files, ErrorsNameTheFileAndTheReason) {
  const TemporaryFolder folder;
  const std::string missing = (folder / "none").string(), here = folder.path().string();
  EXPECT_EQ(message_of(Kind::io, [&] { open_to_read(missing, "file list"); }),
            "cannot open file list '" + missing + "': No such file or directory");
  EXPECT_EQ(message_of(Kind::io, [&] { read_text(here, ""); }), "cannot open '" + here + "': Is a directory");
  write_text(folder / "file", "");
  EXPECT_EQ(message_of(Kind::io, [&] { write_text(folder / "file/below", ""); }),
            "cannot create folder '" + here + "/file': Not a directory");
}

TEST(Files, ReadsMoreThanABlock) {
  const TemporaryFolder folder;
  const std::string text(200'001, 'x');
  write_text(folder / "a", text);
  EXPECT_EQ(read_text(folder / "a", ""), text);
}

}  // namespace
}  // namespace hctr::test
