#include "prepare/preprocess/table_parser.h"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <cmath>
#include <random>

#include "prepare/text_work.h"
#include "unit/data/norm_test_files.h"

namespace hctr::data_test {
namespace {

ParsedRows parsed(const TextTable& table, const std::string& text, const BadRows& bad_rows = {}) {
  ParsedRows rows;
  TableParser(table, bad_rows).parse({.text = text, .file = "f", .first_line = 1, .first_row = 0}, rows);
  return rows;
}

TEST(TableParser, ReadsFieldsByTheKindOfTheirColumn) {
  const TextTable table = named_table(
      "a,b,c,d,y", ',', {.labels = {"y"}, .numbers = {"b"}, .categories = {"a"}, .lists = {"d"}, .split = "c"});
  const ParsedRows rows = parsed(table, "x,1.5,7,p|q,1\r\n\n,,8,,0\n\"u,\"\"v\",-3e2,9,\"p\",0.25\n");
  ASSERT_EQ(rows.rows, 3u);
  EXPECT_EQ(rows.labels[0], (std::vector<float>{1, 0, 0.25f, 0})) << "one element for the blank line";
  EXPECT_EQ(rows.numbers[0][0], 1.5);
  EXPECT_TRUE(std::isnan(rows.numbers[0][1]));
  EXPECT_EQ(rows.numbers[0][2], -300);
  EXPECT_EQ(rows.split[2], 9);
  EXPECT_EQ(rows.categories[0].codes[0], text_code("x", 0));
  EXPECT_EQ(rows.categories[0].codes[1], kMissing);
  EXPECT_EQ(rows.categories[0].codes[2], text_code("u,\"v", 0));
  EXPECT_EQ(rows.categories[1].codes, (std::vector<uint64_t>{text_code("p", 1), text_code("q", 1), text_code("p", 1)}));
  EXPECT_EQ(rows.categories[1].ends[1], 2u);
  EXPECT_EQ(rows.index[2], 2) << "blank lines are no rows";
}

TEST(TableParser, HexadecimalDigitsOfAnyLengthUpToEight) {
  TextTable table;
  table.columns = {{"y", ColumnKind::click, 0}, {"c", ColumnKind::hex, 0}};
  const ParsedRows rows = parsed(table, "0\tfFfFfFfF\n1\t0\n1\t\n0\t00000a\n");
  EXPECT_EQ(std::vector<uint64_t>(rows.categories[0].codes.begin(), rows.categories[0].codes.begin() + 4),
            (std::vector<uint64_t>{2 + 0xffffffffull, 2, 0, 12}));
  EXPECT_EQ(parsed(table, "0\t123456789\n1\t1\n", {.skip = true}).bad.count, 1);
}

TEST(TableParser, ABadRowLeavesNothingBehind) {
  const TextTable table = named_table("l,y", ',', {.labels = {"y"}, .lists = {"l"}});
  const ParsedRows rows = parsed(table, "a|b,1\nc|d,x\ne,0\nf|g|h,y\n", {.skip = true});
  EXPECT_EQ(rows.bad.count, 2);
  EXPECT_EQ(rows.bad.first, "'f' line 2, at byte 6: column y: expected a number, found 'x'");
  ASSERT_EQ(rows.rows, 2u);
  EXPECT_EQ(rows.categories[0].codes, (std::vector<uint64_t>{text_code("a", 0), text_code("b", 0), text_code("e", 0)}));
  EXPECT_EQ(rows.index[1], 2) << "bad rows have a number";
}

std::string all_of(TextSource& source) {
  std::string text;
  TextBlock block;
  while (source.next(block)) text += block.text;
  return text;
}

std::string all_of(TextSource&& source) { return all_of(source); }

TEST(TextSource, PlainGzipAndZstandardReadTheSame) {
  const Folder folder;
  std::string text;
  for (int64_t i = 0; i < 300000; ++i) text += cat(i * 7919, "\n");
  write_text(folder / "a", text);
  const gzFile gz = ::gzopen((folder / "b").c_str(), "wb");
  ::gzwrite(gz, text.data(), static_cast<unsigned>(text.size()));
  ::gzclose(gz);
  std::string packed(::ZSTD_compressBound(text.size()), '\0');
  packed.resize(::ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  write_text(folder / "c", packed + packed);  // two frames, as `cat a.zst b.zst` makes them
  EXPECT_TRUE(all_of(TextSource({folder / "a"})) == text);
  EXPECT_TRUE(all_of(TextSource({folder / "b"})) == text);
  EXPECT_TRUE(all_of(TextSource({folder / "c"})) == text + text);
  TextSource source({folder / "a", folder / "c"});
  EXPECT_EQ(source.bytes(), static_cast<int64_t>(text.size() + 2 * packed.size()));
  TextBlock block;
  int64_t done = 0;
  while (source.next(block)) {
    EXPECT_GE(block.bytes_done, done);
    done = block.bytes_done;
  }
  EXPECT_EQ(done, source.bytes());
  EXPECT_EQ(source.rows(), 900000);

  write_text(folder / "d", packed.substr(0, packed.size() - 9));
  EXPECT_SAYS(message_of([&] { all_of(TextSource({folder / "d"})); }), "d' is damaged or cut off");
}

TEST(TextWork, RowsAreCountedPieceByPieceAsTheyAreRead) {
  const Folder folder;
  std::mt19937_64 random(7);
  const char* const parts[] = {"a,b", "\n", "\r\n", "\r", "x", "\n\n"};
  for (int round = 0; round < 200; ++round) {
    const auto header = round % 2 == 0 ? std::optional<std::string>() : "name,name";
    std::vector<std::string> files;
    for (const char* name : {"a", "b", "c"}) {
      std::string text = header ? "name,name\r\n" : "";
      for (uint64_t left = random() % 40; left > 0; --left) text += parts[random() % std::size(parts)];
      write_text(folder / name, text);
      files.push_back(folder / name);
    }
    TextSource source(files, header);
    all_of(source);
    const int64_t piece = 1 + static_cast<int64_t>(random() % 9);
    EXPECT_EQ(count_rows(files, header, 3, piece), source.rows())
        << "round " << round << ", pieces of " << piece << " bytes";
  }
}

TEST(TextSource, HeadersAreInNoBlockAndMustAgree) {
  const Folder folder;
  write_text(folder / "a", "\xEF\xBB\xBFx,y\r\n1,2\n");
  write_text(folder / "b", "x,y\n3,4");
  write_text(folder / "c", "x,z\n5,6\n");
  EXPECT_EQ(first_line_of(folder / "a"), "x,y");
  EXPECT_EQ(all_of(TextSource({folder / "a", folder / "b"}, "x,y")), "1,2\n3,4\n");
  EXPECT_SAYS(message_of([&] { all_of(TextSource({folder / "a", folder / "c"}, "x,y")); }),
              "c' line 1: the columns are named 'x,z'");
}

}  // namespace
}  // namespace hctr::data_test
