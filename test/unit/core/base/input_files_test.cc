// No output file overwrites an input file, in whatever way the paths are written.
#include "core/base/input_files.h"

#include <gtest/gtest.h>

#include "support/message_of.h"
#include "support/temporary_folder.h"

namespace hctr::test {
namespace {

class InputFiles : public testing::Test {
 protected:
  void SetUp() override {
    write_text(folder_ / "data/rows.csv", "1,2\n");
    write_text(folder_ / "other.csv", "3,4\n");
  }
  std::string refused(const fs::path& out, const std::vector<fs::path>& inputs) {
    return message_of(Kind::usage, [&] { expect_no_input(out, "--out", inputs); });
  }
  TemporaryFolder folder_;
};

TEST_F(InputFiles, AreNotReplacedUnderAnyName) {
  const fs::path input = folder_ / "data/rows.csv";
  EXPECT_EQ(refused(input, {folder_ / "other.csv", input}),
            cat("--out '", input.string(),
                "' is a file that this command reads, so it cannot be the output; name another path"));
  fs::create_hard_link(input, folder_ / "hard.csv");
  fs::create_symlink(input, folder_ / "soft.csv");
  fs::create_directory_symlink(folder_ / "data", folder_ / "linked");
  for (const char* name : {"hard.csv", "soft.csv", "linked/rows.csv", "data/../data/./rows.csv"})
    EXPECT_NE(refused(folder_ / name, {input}).find(cat("reads (as '", input.string(), "')")), std::string::npos)
        << name;
}

TEST_F(InputFiles, InFoldersAreInputsToo) { EXPECT_NE(refused(folder_ / "data/rows.csv", {folder_.path()}), ""); }

TEST_F(InputFiles, AreNotWhatIsNewOrAnotherFile) {
  expect_no_input(folder_ / "new.csv", "--out", {folder_ / "new.csv", folder_ / "data/rows.csv", ""});
  expect_no_input(folder_ / "other.csv", "--out", {folder_ / "data", folder_ / "missing.csv"});
  expect_no_input("", "--out", {folder_ / "data/rows.csv"});
  bool listed = false;
  expect_no_input(folder_ / "new.csv", "--out", [&] {
    listed = true;
    return std::vector<fs::path>();
  });
  EXPECT_FALSE(listed) << "a data set is not listed for a file that is new";
}

TEST_F(InputFiles, OfProgramsThatWriteManyFilesAreFoundByTheirNames) {
  const auto numbered = [](const std::string& name) { return is_numbered(name, "rows.", ".data"); };
  write_text(folder_ / "data/rows.12.data", "x");
  expect_no_input_in(folder_ / "data", "--out", {folder_ / "data/rows.csv"}, numbered);
  EXPECT_NE(
      message_of(Kind::usage,
                 [&] { expect_no_input_in(folder_ / "data", "--out", {folder_ / "data/rows.12.data"}, numbered); })
          .find("rows.12.data' is a file that this command reads"),
      std::string::npos);
  for (const char* name : {"rows.data", "rows..data", "rows.1x.data", "rows.1.csv"})
    EXPECT_FALSE(numbered(name)) << name;
}

}  // namespace
}  // namespace hctr::test
