// Folders, partitions and patterns as sources: the ordered list of files, and errors.
#include "formats/io/source_files.h"

#include <gtest/gtest.h>

#include "core/base/expect.h"
#include "formats/io/set_files.h"
#include "formats/norm/norm_set.h"
#include "formats/parquet/parquet_set.h"
#include "formats/raw/raw_set.h"
#include "formats/text/criteo_set.h"
#include "formats/text/csv_set.h"
#include "support/message_of.h"
#include "unit/formats/data/reader_rig.h"

namespace hctr::data_test {
namespace {

struct SourceFiles : ::testing::Test {
  void put(const std::string& name, const std::string& text = "a\n1\n") const {
    fs::create_directories((folder / name).parent_path());
    write_text(folder / name, text);
  }
  /// The files of a source in the folder, relative to the folder.
  std::vector<std::string> names(const std::string& source = "") const {
    std::vector<std::string> found;
    const auto files = files_of_folder(folder / source);
    if (!files) return {"a file"};
    for (const fs::path& file : *files) found.push_back(file.lexically_relative(folder.path()).string());
    return found;
  }
  std::string error(const std::string& source = "") const {
    return message_of([&] { names(source); });
  }
  Folder folder;
};

using Names = std::vector<std::string>;

TEST_F(SourceFiles, AFolderNamesItsDataFilesInBytewiseOrder) {
  for (const char* name : {"b.csv", "a10.csv", "a9.csv", "B.csv", "_SUCCESS", ".a.csv.crc", "_file_list.txt",
                           "a.csv.crc", "c.csv.tmp", "d.csv.part", "z.csv.gz"})
    put(name);
  EXPECT_EQ(names(), (Names{"B.csv", "a10.csv", "a9.csv", "b.csv", "z.csv.gz"}));
  EXPECT_EQ(names("a9.csv"), Names{"a file"});
}

TEST_F(SourceFiles, PartitionsAreLookedIntoAndOtherFoldersAreRefused) {
  put("day=2/hour=10/x.parquet");
  put("day=2/hour=9/x.parquet");
  put("day=10/hour=1/x.parquet");
  put("day=2/_temporary/0/x.parquet");
  EXPECT_EQ(names(), (Names{"day=10/hour=1/x.parquet", "day=2/hour=10/x.parquet", "day=2/hour=9/x.parquet"}));
  std::string all;
  for (const Partition& one : partitions_in(folder / "day=2/city=New%20York/hour=__HIVE_DEFAULT_PARTITION__/x"))
    all += cat(one.name, " ", one.value, ";");
  EXPECT_EQ(all, "day 2;city New York;hour ;");
  put("old/x.parquet");
  EXPECT_SAYS(error(), "holds the folder 'old'");
  EXPECT_SAYS(error(), "old' as the source, or name the files with a pattern");
}

TEST_F(SourceFiles, APatternNamesWhatItMatches) {
  for (const char* name : {"x1.csv", "x2.csv", "y1.csv", "y1.txt", "_x3.csv", "day=1/p.csv", "day=2/p.csv"}) put(name);
  EXPECT_EQ(names("*.csv"), (Names{"x1.csv", "x2.csv", "y1.csv"}));
  EXPECT_EQ(names("?1.csv"), (Names{"x1.csv", "y1.csv"}));
  EXPECT_EQ(names("x[2-9].csv"), Names{"x2.csv"});
  EXPECT_EQ(names("day=*"), (Names{"day=1/p.csv", "day=2/p.csv"}));
  EXPECT_EQ(names("day=*/*.csv"), (Names{"day=1/p.csv", "day=2/p.csv"}));
  put("odd[1].csv");
  EXPECT_EQ(names("odd[1].csv"), Names{"a file"}) << "a name that is there is no pattern";
  EXPECT_TRUE(source_exists(folder / "x*.csv"));
  EXPECT_FALSE(source_exists(folder / "z*.csv"));
}

TEST_F(SourceFiles, MixedEndingsEmptyFoldersAndPatternsWithoutAMatchAreErrors) {
  put("x.csv");
  put("y.parquet");
  EXPECT_SAYS(error(), "x.csv' and '");
  EXPECT_SAYS(error(), "y.parquet', which have different endings: select files with a pattern, such as '");
  fs::create_directories(folder / "none");
  put("none/_SUCCESS");
  EXPECT_SAYS(error("none"), "none' contains no data file; names that start with '.' or '_' are ignored");
  EXPECT_SAYS(error("*.tsv"), "no file matches '");
  EXPECT_SAYS(message_of([&] { text_files(folder / "*.parquet", Log::silent()); }),
              "is a Parquet file; set \"format\": \"Parquet\"");
}

TEST_F(SourceFiles, EveryFormatOfFilesTakesAFolderAndAPattern) {
  put("set/b.data");
  put("set/a.data");
  for (const FormatType& format : {csv_format(), criteo_format(), norm_format(), raw_format()})
    for (const char* source : {"set", "set/", "set/*.data"})
      EXPECT_EQ(format.files(folder / source, Log::silent()).size(), 2u) << source;
}

TEST_F(SourceFiles, AListNeedsNoCountAndMayNameFoldersAndPatterns) {
  put("set/b.data");
  put("set/a.data");
  put("c.data");
  for (const char* text : {"c.data\nset\n", "2\r\nc.data\r\nset/*.data\r\n",
                           "\xEF\xBB\xBF"
                           "c.data\nset/a.data\nset/b.data"}) {
    put("list", text);
    for (const FormatType& format : {csv_format(), criteo_format(), norm_format(), raw_format(), parquet_format()})
      EXPECT_EQ(format.files(folder / "list", Log::silent()),
                (std::vector<fs::path>{folder / "c.data", folder / "set/a.data", folder / "set/b.data"}))
          << text;
    EXPECT_EQ(text_inputs({(folder / "list").string(), "-", (folder / "set/").string()}, Log::silent()).size(), 6u);
  }
  put("list", "c.data\n1\n");
  EXPECT_EQ(text_files(folder / "list", Log::silent()).size(), 1u) << "a table whose header is the name of a file";
  put("list", "none.data\nc.data\n");
  EXPECT_SAYS(message_of([&] { norm_files(folder / "list", Log::silent()); }),
              "line 1: expected the number of files, at least 1, or the path of a file, found \"none.data\"");
  put("list", "c.data\nset/*.none\n");
  EXPECT_SAYS(message_of([&] { norm_files(folder / "list", Log::silent()); }), "line 2: there is no file 'set/*.none'");
}

TEST_F(SourceFiles, RowsOfACsvFolderComeFileAfterFile) {
  put("set/2.csv", "y,c\n1,b\n");
  put("set/1.csv", "c,y\na,0\n");
  put("set/_SUCCESS", "");
  DataSection section = section_of(1, 0, {input_of("s", 1, 1, 1)});
  section.format = kCsvFormat;
  section.options.edit<CsvOptions>().labels = {"y"};
  section.options.edit<CsvOptions>().slots.emplace_back().columns = {"c"};
  Rig rig(section, folder / "set", {.batch = 2, .repeat = false});
  EXPECT_EQ(rig.next()->label, (std::vector<float>{0, 1}));
}

TEST_F(SourceFiles, PartitionsOfACsvFolderAreColumns) {
  put("days/day=1/x.csv", "y,c\n1,7\n");
  put("days/day=2/hour=__HIVE_DEFAULT_PARTITION__/x.csv", "c,y\n8,0\n9,1\n");
  DataSection section = section_of(1, 1, {input_of("s", 2, 2, 2)});
  section.format = kCsvFormat;
  auto& csv = section.options.edit<CsvOptions>();
  csv.labels = {"y"};
  csv.dense = {{.columns = {"day"}}};
  csv.slots = {{.columns = {"day", "c"}, .keys = KeyRule::number}};
  const auto read = [&](Source source) {
    source.path = (folder / "days").string();
    Rig rig(section, source, {.batch = 3, .repeat = false});
    auto batch = *rig.next();
    return std::pair(batch, rig.reader->take_passed_on().kept);
  };
  const auto [batch, kept] = read({.keep = {"c", "day"}});
  EXPECT_EQ(batch.label, (std::vector<float>{1, 0, 1}));
  EXPECT_EQ(batch.dense, (std::vector<float>{1, 2, 2}));
  EXPECT_EQ(kept.cell(4), "9");
  EXPECT_EQ(kept.cell(5), "2");
  put("days/day=1/x.csv", "y,c,day\n1,7,5\n");
  EXPECT_EQ(read({}).first.dense, (std::vector<float>{5, 2, 2})) << "a column of that name";
  csv.dense = {{.columns = {"hour"}}};
  EXPECT_SAYS(message_of([&] { read({}); }), "there is no column 'hour'; there are 'y', 'c', 'day'");
  put("days/day=1/x.csv", "y,c\n1,7,5\n");
  csv.dense = {{.columns = {"day"}}};
  EXPECT_SAYS(message_of([&] { read({}); }), "expected 2 values, found 3");
}

}  // namespace
}  // namespace hctr::data_test
