#include "prepare/preprocess/preprocessed_convert.h"

#include <gtest/gtest.h>

#include "formats/io/file_list.h"
#include "unit/formats/data/norm_test_files.h"

namespace hctr::data_test {
namespace {

std::string space_line(int i, int wide) {
  std::string line = i % 3 == 0 ? "1" : "0";
  for (int k = 0; k < 13; ++k) line += cat(" ", 0.5 * i + k);
  for (int k = 0; k < wide; ++k) line += cat(" ", 1000 + i + k);
  for (int k = 0; k < 26; ++k) line += cat(" ", 100 * k + i % 7);
  return line;
}

std::string space_lines(int count, int wide) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += space_line(i, wide) + (i + 1 < count ? "\n" : "");  // no newline after the last line
  return text;
}

struct Preprocessed : ::testing::Test {
  PreprocessedSummary convert(const std::string& text) {
    write_text(folder / "in.txt", text);
    options.input = (folder / "in.txt").string();
    options.prefix = (folder / "data").string() + "/part";
    options.list = folder / "list.txt";
    return convert_preprocessed(options, Log::silent());
  }
  Folder folder;
  PreprocessedOptions options;
};

TEST_F(Preprocessed, EveryLineIsInTheFilesAndThePartialLastFileInTheList) {
  options.rows_per_file = 40;
  const PreprocessedSummary summary = convert(space_lines(100, 0));
  EXPECT_EQ(summary.rows, 100);
  EXPECT_EQ(summary.files, 3);
  const DataSection section = section_of(1, 13, {input_of("x", 26, 1, 26)});
  const auto files = read_file_list(options.list, Log::silent());
  ASSERT_EQ(files.size(), 3u);
  int row = 0;
  for (const fs::path& file : files) {
    const NormInfo info = read_norm_info(file, norm_demands(section, KeyWidth::detect));
    EXPECT_EQ(info.key_bytes, 4);
    EXPECT_EQ(info.check, Check::sum);
    const SampleBlock block = read_norm_file(file, norm_demands(section, KeyWidth::detect));
    for (int64_t r = 0; r < block.rows; ++r, ++row) {
      EXPECT_EQ(block.label[static_cast<size_t>(r)], row % 3 == 0);
      EXPECT_EQ(block.dense[static_cast<size_t>(r * 13 + 2)], 0.5f * static_cast<float>(row) + 2);
      EXPECT_EQ(block.keys[static_cast<size_t>(25 * block.rows + r)], 2500 + row % 7);
    }
  }
  EXPECT_EQ(row, 100);
}

TEST_F(Preprocessed, WideKeysShareSlot0AndListsAndKeySetsCanBeSplit) {
  options.wide_keys = 2;
  options.rows_per_file = 10;
  options.files_per_list = 2;
  options.keyset = true;
  EXPECT_EQ(convert(space_lines(45, 2)).lists, 3);
  const DataSection section = section_of(1, 13, {input_of("wide", 1, 2, 2), input_of("deep", 26, 1, 26)});
  const auto files = read_file_list(folder / "list.2.txt", Log::silent());
  ASSERT_EQ(files.size(), 1u);
  const SampleBlock block = read_norm_file(files[0], norm_demands(section, KeyWidth::detect));
  ASSERT_EQ(block.rows, 5);
  EXPECT_EQ(block.keys[0], 1040);
  EXPECT_EQ(block.keys[1], 1041);
  EXPECT_EQ(fs::file_size(folder / "list.2.keyset"), 4 * (6 + 26 * 5))
      << "rows 40-44: keys 1040-1045, and five values in 26 columns";
  EXPECT_TRUE(fs::exists(folder / "list.0.keyset"));
}

TEST_F(Preprocessed, MistakesNameLineAndField) {
  EXPECT_SAYS(message_of([&] { convert(space_line(0, 0) + "\n" + space_line(1, 0) + " 5\n"); }),
              "expected 40 fields (label, 13 dense values, 26 keys), found 41\n  while reading '" +
                  (folder / "in.txt").string() + "' line 2");
  EXPECT_SAYS(message_of([&] { convert("x" + space_line(0, 0).substr(1)); }), "expected a number, found 'x'");
  std::string line = space_line(0, 0);
  line.replace(line.rfind(' '), line.npos, " 4294967296");
  EXPECT_SAYS(message_of([&] { convert(line); }), "expected a key of 32 bits, found '4294967296'");
  EXPECT_SAYS(message_of([&] { convert(line); }), "line 1, field 40");
  EXPECT_SAYS(message_of([&] { convert(""); }), "holds no rows");
  options.key_bytes = 8;
  EXPECT_EQ(message_of([&] { convert(line); }), "");
  options.input = folder / "none.txt";
  EXPECT_SAYS(message_of([&] { convert_preprocessed(options, Log::silent()); }), "cannot open data file");
  EXPECT_TRUE(fs::exists(folder / "list.txt")) << "the input is checked before an older list is removed";
}

}  // namespace
}  // namespace hctr::data_test
