#include "core/base/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "core/base/expect.h"
#include "support/message_of.h"
#include "support/run_program.h"

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

TEST(FileSet, GivesAllFilesTheirNamesOrNone) {
  const TemporaryFolder folder;
  write_text(folder / "old", "of an older set");
  {
    FileSet set;
    set.add(folder / "a").write("1");
    set.add(folder / "b").write("2");
  }
  EXPECT_EQ(entries(folder.path()), 1u) << "without commit nothing is left";
  FileSet set;
  set.add(folder / "a").write("1");
  AtomicFile& finished = set.add(folder / "b");
  finished.write("2");
  finished.finish();
  set.remove(folder / "old");
  EXPECT_FALSE(fs::exists(folder / "b"));
  set.commit();
  EXPECT_EQ(read_text(folder / "a", "") + read_text(folder / "b", ""), "12");
  EXPECT_EQ(entries(folder.path()), 2u);
}

TEST(FileSet, AFileThatCannotGetItsNameTakesTheOthersWithIt) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "a");
  {
    FileSet set;
    set.add(folder / "a").write("1");
    set.add(folder / "b").write("2");
    EXPECT_NE(message_of(Kind::io, [&] { set.commit(); }).find("cannot rename"), std::string::npos);
  }
  EXPECT_EQ(entries(folder.path()), 1u) << "the folder";
}

TEST(FileSet, LeavesNoFolderThatItMadeForNothing) {
  const TemporaryFolder folder;
  { FileSet().add(folder / "a/b/c"); }
  EXPECT_FALSE(fs::exists(folder / "a/b"));
  FileSet set;
  set.add(folder / "x/c").write("1");
  set.commit();
  EXPECT_TRUE(fs::exists(folder / "x/c"));
}

TEST(Files, PartsOfDeadProcessesInFoldersOfAModelAreRemoved) {
  const TemporaryFolder folder;
  for (const char* name : {"m0.model", "m1", "other.model"}) fs::create_directory(folder / name);
  for (const char* name : {"m0.model/key.2000000000.part", "m1/key.2000000000.part", "other.model/key.2000000000.part"})
    write_text(folder / name, "");
  EXPECT_EQ(remove_parts_of_dead_processes(folder / "m"), 1);
  EXPECT_FALSE(fs::exists(folder / "m0.model/key.2000000000.part"));
}

TEST(Files, PartsOfDeadProcessesAreRemovedAndOthersKept) {
  const TemporaryFolder folder;
  const std::string own = cat("m_own.", ::getpid(), ".part"), parent = cat("m_parent.", ::getppid(), ".part");
  for (const std::string& name : {std::string("m_dead.2000000000.part"), own, parent, std::string("m.part"),
                                  std::string("other.2000000000.part"), std::string("m_2000000000")})
    write_text(folder / name, "");
  EXPECT_EQ(remove_parts_of_dead_processes(folder / "m"), 2)
      << "that of the dead process, and one of an earlier process "
         "with this number";
  EXPECT_FALSE(fs::exists(folder / "m_dead.2000000000.part"));
  EXPECT_TRUE(fs::exists(folder / parent));
  EXPECT_EQ(entries(folder.path()), 4u);
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
  EXPECT_EQ(size_of_file(folder / "a", ""), 200'001);
  EXPECT_EQ(read_text(folder / "a", "", 200'001), text);
}

/// Rejects files that are too large for a text: a sparse file of 1 TiB, and an endless pipe.
TEST(Files, ReadsNoTextThatWouldTakeTheMemory) {
  const TemporaryFolder folder;
  write_text(folder / "a", "x");
  fs::resize_file(folder / "a", uint64_t{1} << 40);
  EXPECT_EQ(message_of(Kind::io, [&] { read_text(folder / "a", "config"); }),
            cat("cannot read config '", (folder / "a").string(),
                "': it has 1099511627776 bytes, but at most 1073741824 are read"));
  const int endless = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(endless, 0);
  const std::string path = cat("/dev/fd/", endless);
  EXPECT_EQ(message_of(Kind::io, [&] { read_text(path, "", 1 << 20); }).find(cat("cannot read '", path, "': it has ")),
            0u);
  ::close(endless);
}

}  // namespace
}  // namespace hctr::test
