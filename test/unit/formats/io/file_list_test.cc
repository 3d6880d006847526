#include "formats/io/file_list.h"

#include <gtest/gtest.h>

#include "unit/formats/data/norm_test_files.h"

namespace hctr::data_test {
namespace {

struct Lists : ::testing::Test {
  Lists() {
    for (const char* name : {"a.data", "b c.data"}) write_text(folder / name, "x");
  }
  std::vector<fs::path> read(const std::string& text) {
    write_text(folder / "list.txt", text);
    warnings.clear();
    return read_file_list(folder / "list.txt", Log([this](Level, std::string_view line) { warnings += line; }));
  }
  std::string error(const std::string& text) {
    return message_of([&] { read(text); });
  }
  Folder folder;
  std::string warnings;
};

TEST_F(Lists, EntriesAreFoundInTheFolderOfTheListWithAnyLineEnds) {
  const std::vector<fs::path> expected = {folder / "a.data", folder / "b c.data"};
  for (const char* text : {"2\na.data\nb c.data\n", "2\na.data\nb c.data", "2\r\na.data\r\nb c.data\r\n",
                           "\xEF\xBB\xBF"
                           "2 \n a.data\nb c.data\t\n\n\r\n\n"}) {
    EXPECT_EQ(read(text), expected);
    EXPECT_EQ(warnings, "");
  }
}

TEST_F(Lists, TheWorkingDirectoryComesFirst) {
  const fs::path before = fs::current_path();
  fs::create_directories(folder / "sub");
  write_text(folder / "sub" / "a.data", "other");
  fs::current_path(folder / "sub");
  EXPECT_EQ(read("1\na.data\n"), std::vector<fs::path>{"a.data"});
  EXPECT_SAYS(warnings, "'a.data' exists in the working directory and in the folder of the list");
  fs::current_path(before);
}

TEST_F(Lists, EveryMistakeNamesListAndLine) {
  EXPECT_SAYS(error("2\na.data\nmissing.data\n"),
              "io: '" + (folder / "list.txt").string() +
                  "' line 3: there is no file 'missing.data', neither in the working directory");
  EXPECT_SAYS(error("1\n/no/such/file\n"), "line 2: there is no file '/no/such/file'");
  EXPECT_SAYS(error("3\na.data\nb c.data\n"), "line 1 promises 3 files, but 2 follow");
  EXPECT_SAYS(error("2\n\na.data\n"), "line 2: expected the path of a data file, found a blank line");
  for (const char* text : {"", "0\n", "none.data\n", "-1\na.data\n", "2x\na.data\n"})
    EXPECT_SAYS(error(text), "line 1: expected the number of files, at least 1, or the path of a file, found ");
  EXPECT_SAYS(error("1\npart.parquet\n"), "is a Parquet file; set \"format\": \"Parquet\"");
  EXPECT_SAYS(message_of([&] { read_file_list(folder / "none.txt", Log::silent()); }), "io: cannot open file list '");
}

TEST_F(Lists, ADataFileInPlaceOfAListIsRecognised) {
  EXPECT_SAYS(error(std::string("@\0\0\0abc", 7)), "is a binary file; expected a file list");
}

TEST_F(Lists, EntriesPastTheCountAreIgnoredWithAWarning) {
  EXPECT_EQ(read("1\na.data\nmissing.data\n").size(), 1u);
  EXPECT_SAYS(warnings, "line 1 says 1 file; the entries from line 3 on are ignored");
}

TEST_F(Lists, AWrittenListReadsBack) {
  for (const bool relative : {true, false}) {
    write_file_list(folder / "out.txt", {folder / "a.data", folder / "b c.data"}, relative);
    EXPECT_EQ(read_file_list(folder / "out.txt", Log::silent()),
              (std::vector<fs::path>{folder / "a.data", folder / "b c.data"}));
  }
  EXPECT_EQ(read_text(folder / "out.txt", "").find("a.data") > 3, true);
}

}  // namespace
}  // namespace hctr::data_test
