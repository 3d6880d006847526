#include "prepare/preprocess/table_parser.h"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "formats/data/text_values.h"
#include "prepare/text_work.h"
#include "unit/formats/data/norm_test_files.h"

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

TEST(TableParser, ListsInBracketsHaveTheCodesOfTheirValues) {
  TextTable table = named_table("l,y", ',', {.labels = {"y"}, .lists = {"l"}});
  table.brackets = true;
  table.list_separator = 0;
  const ParsedRows rows = parsed(table, "\"['a', 'b c']\",1\n[],0\n\"[[1], [2]]\",0\n\"(a, )\",1\n", {.skip = true});
  ASSERT_EQ(rows.rows, 3u);
  EXPECT_EQ(rows.categories[0].codes,
            (std::vector<uint64_t>{text_code("a", 0), text_code("b c", 0), text_code("a", 0)}));
  EXPECT_EQ(rows.categories[0].ends[1], 2u) << "an empty list has no values";
  EXPECT_EQ(rows.bad.first,
            "'f' line 3, at byte 22: column l: expected a list in brackets, found '[[1], [2]]': the list contains "
            "lists");
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
  write_text(folder / "c", packed + packed);  // two Zstandard frames, as from `cat a.zst b.zst`
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
  EXPECT_SAYS(message_of([&] { all_of(TextSource({folder / "d"})); }), "d' is damaged or truncated");
}

TEST(TextWork, RowsAreCountedPieceByPieceAsTheyAreRead) {
  const Folder folder;
  std::mt19937_64 random(7);
  const char* const parts[] = {"a,b", "\n", "\r\n", "\r", "x", "\n\n"};
  for (int round = 0; round < 200; ++round) {
    const auto header = round % 2 == 0 ? std::optional<std::string>() : "name,name";
    std::vector<std::string> files;
    for (const char* name : {"a", "b", "c"}) {
      std::string text = cat(round % 3 == 0 ? "\xEF\xBB\xBF" : "", header ? "name,name\r\n" : "");
      for (uint64_t left = random() % 40; left > 0; --left) text += parts[random() % std::size(parts)];
      if (text.find('\n') == text.npos) text += '\n';  // a text with carriage returns but no newline is rejected
      write_text(folder / name, text);
      files.push_back(folder / name);
    }
    TextSource source(files, header);
    all_of(source);
    const int64_t piece = 1 + static_cast<int64_t>(random() % 9);
    EXPECT_EQ(count_rows(files, header, kPlainLines, 3, {}, piece), source.rows())
        << "round " << round << ", pieces of " << piece << " bytes";
  }
}

TEST(TextSource, HeadersAreInNoBlockAndMustAgree) {
  const Folder folder;
  write_text(folder / "a", "\xEF\xBB\xBFx,y\r\n1,2\n");
  write_text(folder / "b", "x,y\n3,4");
  write_text(folder / "c", "x,z\n5,6\n");
  EXPECT_EQ(first_record_of(folder / "a", kPlainLines), "x,y");
  EXPECT_EQ(all_of(TextSource({folder / "a", folder / "b"}, "x,y")), "1,2\n3,4\n");
  EXPECT_SAYS(message_of([&] { all_of(TextSource({folder / "a", folder / "c"}, "x,y")); }),
              "c' line 1: the columns are named 'x,z'");
}

TEST(TextSource, QuotedRecordsAreNeverCut) {
  const Folder folder;
  const TextGrammar quoted{.delimiter = ',', .quote = '"'};
  const std::string header = "\"a\nname\",b", row = "\"x\n\n,\"\"y\",1\r\n";
  std::string text = "\xEF\xBB\xBF\n" + header + "\n";
  // The text is long enough for several blocks.
  for (int i = 0; i < 200'000; ++i) text += i % 3 == 0 ? row : i % 3 == 1 ? "plain,2\n" : "\n";
  write_text(folder / "a", text);
  EXPECT_EQ(first_record_of(folder / "a", quoted), header);
  TextSource source({folder / "a", folder / "a"}, header, quoted);
  RecordSplitter splitter(quoted);
  int64_t rows = 0, blocks = 0, line = 4;
  for (TextBlock block; source.next(block); ++blocks) {
    if (block.first_row == 133'334) line = 4;  // first row of the second file
    EXPECT_EQ(block.first_line, line);
    EXPECT_EQ(block.first_row, rows);
    line += std::count(block.text.begin(), block.text.end(), '\n');
    for (const char *p = block.text.data(), *end = p + block.text.size(); p < end;) {
      p = splitter.split(p, end);
      if (is_blank(splitter.cells())) continue;
      ++rows;
      ASSERT_EQ(splitter.cells().size(), 2u);
      ASSERT_TRUE(splitter.cells()[0] == "x\n\n,\"y" || splitter.cells()[0] == "plain");
    }
  }
  EXPECT_GT(blocks, 2);
  EXPECT_EQ(rows, 2 * 133'334);
  EXPECT_EQ(count_rows({folder / "a", folder / "a"}, header, quoted, 3), rows);
  write_text(folder / "b", header + "\n\"" + std::string(3 << 20, 'x'));
  EXPECT_SAYS(message_of([&] { all_of(TextSource({folder / "b"}, header, quoted)); }),
              "b' line 3: longer than 1048576 bytes; is a quote never closed?");
}

TEST(TableParser, LineEndsInQuotesAreCountedAndAreNoRows) {
  const TextTable table = named_table("c,y", ',', {.labels = {"y"}, .categories = {"c"}});
  const ParsedRows rows = parsed(table, "\"New\nYork\",1\n\"a\n\nb\",x\nc,0\nd,z\n", {.skip = true});
  ASSERT_EQ(rows.rows, 2u);
  EXPECT_EQ(rows.categories[0].codes[0], text_code("New\nYork", 0));
  EXPECT_EQ(rows.index[1], 2);
  EXPECT_EQ(rows.bad.count, 2);
  EXPECT_EQ(rows.bad.first, "'f' line 3, at byte 13: column y: expected a number, found 'x'");
  EXPECT_SAYS(message_of([&] { parsed(table, "a,1\n\"b,1\nc,0\n", {.skip = true}); }),
              "'f' line 2, at byte 4: the quote that opens value 1 is never closed");
}

TEST(TableParser, RowsOfOtherDialectsAreRefusedWithTheirCause) {
  TextTable table = named_table("c,y", ',', {.labels = {"y"}, .categories = {"c"}});
  table.header = "c,y";
  const auto first = [&](const std::string& text) { return parsed(table, text, {.skip = true}).bad.first; };
  EXPECT_SAYS(first("\"a \\\"b\\\"\",1\nc,1\n"),
              "continues after its closing quote: 'b\\\"\"'; a backslash escapes a quote");
  EXPECT_SAYS(first("-- rows of May\n"), "found 1; the line looks like a comment");
  EXPECT_SAYS(first("7,c,1\n"), "found 3; a cell that contains a delimiter needs quotes");
}

TEST(TableParser, NumbersAreReadAsTheReadersReadThem) {
  const TextTable table = named_table("b,y", ',', {.labels = {"y"}, .numbers = {"b"}});
  const ParsedRows rows = parsed(table, "+1,+0.5\n -2.5 , 1\n1.,\t0\n.5,1e0\nNaN,1\n");
  ASSERT_EQ(rows.rows, 5u);
  EXPECT_EQ(std::vector<double>(rows.numbers[0].begin(), rows.numbers[0].begin() + 4),
            (std::vector<double>{1, -2.5, 1, 0.5}));
  EXPECT_TRUE(std::isnan(rows.numbers[0][4]));
  EXPECT_EQ(std::vector<float>(rows.labels[0].begin(), rows.labels[0].begin() + 4),
            (std::vector<float>{0.5f, 1, 0, 1}));
  for (const char* cell : {"1 2", "++1", "+-1", "1e300", "inf", "0x1", "1,5"}) {
    double number = 0;
    EXPECT_EQ(parsed(table, cat("\"", cell, "\",1\n"), {.skip = true}).bad.count, 1) << cell;
    EXPECT_FALSE(read_number(cell, number)) << cell;
  }
}

TEST(TableParser, NumbersAreReadInTheNotationOfTheTableOrOfTheirColumn) {
  const TextTable table = named_table("a;b;c;y", ';',
                                      {.labels = {"y"},
                                       .numbers = {"a", "b"},
                                       .split = "c",
                                       .number_format = NumberFormat::points_comma,
                                       .notations = {{"b", {NumberFormat::commas_point, "$"}}}});
  const auto of = [&](const std::string& text, const BadRows& bad_rows = {}) {
    ParsedRows rows;
    TableParser(table, bad_rows).parse({.text = text, .file = "f", .first_line = 1, .first_row = 0}, rows);
    return rows;
  };
  const ParsedRows rows = of("1.234;$1,234.5;1.000;0,5\nnan;;-1,5;1\n");
  EXPECT_EQ(rows.numbers[0][0], 1234);
  EXPECT_EQ(rows.numbers[1][0], 1234.5);
  EXPECT_EQ(rows.split[0], 1000);
  EXPECT_EQ(rows.split[1], -1.5);
  EXPECT_EQ(rows.labels[0][0], 0.5f);
  EXPECT_TRUE(std::isnan(rows.numbers[0][1]));
  EXPECT_TRUE(std::isnan(rows.numbers[1][1]));
  EXPECT_TRUE(of("1;1;1;1\n", {.skip = true})
                  .bad.first.ends_with("column b: expected a number as 1,234.5 with '$' or nothing, found '1'"));
  EXPECT_SAYS(message_of([] {
                named_table("a,y", ',', {.labels = {"y"}, .categories = {"a"}, .notations = {{"a", {{}, "$"}}}});
              }),
              "the column \"a\" is not a label or dense value");
}

TEST(TableParser, PartitionsOfAFileAreColumnsOfItsRows) {
  const TextRoles roles{.labels = {"y"}, .numbers = {"hour"}, .categories = {"c", "day"}};
  const TableParser parser(named_table("y,c", ',', roles, {"day", "c", "hour"}), {});
  const auto parsed_of = [&](const std::string& file, const std::string& text) {
    ParsedRows rows;
    parser.parse({.text = text, .file = file, .first_line = 1, .first_row = 0}, rows);
    return rows;
  };
  const ParsedRows rows = parsed_of("set/day=a/c=z/hour=__HIVE_DEFAULT_PARTITION__/f", "1,x\n0,\n");
  EXPECT_EQ(rows.categories[0].codes[0], text_code("x", 0)) << "a column of that name";
  EXPECT_EQ(rows.categories[1].codes[1], text_code("a", 1));
  EXPECT_TRUE(std::isnan(rows.numbers[0][0]));
  EXPECT_EQ(parsed_of("set/day=b/hour=7/f", "1,x\n").numbers[0][0], 7);
  EXPECT_SAYS(message_of([&] { parsed_of("set/day=b/f", "1,x\n"); }), "lacks the partition 'hour'");
  EXPECT_SAYS(message_of([&] { parsed_of("set/day=b/hour=7/f", "1,x,2,3\n"); }), "expected 2 fields");
  const TableParser unused(named_table("y,c", ',', {.labels = {"y"}, .categories = {"c"}}, {"day"}), {});
  ParsedRows plain;
  unused.parse({.text = "1,x\n", .file = "f", .first_line = 1, .first_row = 0}, plain);
  EXPECT_EQ(plain.rows, 1u) << "nothing reads it";
}

TEST(TableParser, CriteoRowsAreReadAsTheReaderReadsThem) {
  const auto row = [](const std::string& integer, const std::string& click = "1") {
    return cat(click, "\t", integer, std::string(12, '\t'), "\tff", std::string(25, '\t'), "\n");
  };
  for (const char* cell : {"17", "+17", " 17 ", "17.0", "1.7e1"}) {
    const ParsedRows rows = parsed(criteo_table(), row(cell, "1.0"));
    ASSERT_EQ(rows.rows, 1u) << cell;
    EXPECT_EQ(rows.numbers[0][0], 17) << cell;
    EXPECT_EQ(rows.labels[0][0], 1) << cell;
  }
  for (const char* cell : {"1.5", "NaN", " ", "1e60", "0x11"}) {
    const ParsedRows rows = parsed(criteo_table(), row(cell), {.skip = true});
    EXPECT_SAYS(rows.bad.first, cat("column I1: expected an integer or nothing, found '", cell, "'"));
  }
  EXPECT_EQ(parsed(criteo_table(), row("1", "2"), {.skip = true}).bad.count, 1);
}

TEST(TableParser, TimesSplitRowsByTheirDay) {
  const auto seconds = [](const std::string& value, const std::string& cells) {
    TextTable table = named_table("day,y", ',', {.labels = {"y"}, .split = "day"});
    const double from = read_split(value, table.split_cells);
    const ParsedRows rows = parsed(table, cells, {.skip = true});
    std::string sides;
    for (size_t row = 0; row < rows.rows; ++row) sides += rows.split[row] < from ? "t" : "e";
    return sides + std::string(static_cast<size_t>(rows.bad.count), '-');
  };
  EXPECT_EQ(
      seconds("2017-04-01", "2017-03-31,1\n2017-04-01,0\n2016-12-31 23:59:59,0\n2017-04-01T00:00,1\n20170402,1\n"),
      "tetee");
  EXPECT_EQ(seconds("2017-04-01", "2017-03-31T23:30:00-05:00,1\n2017-04-01 00:10+09:00,1\n"), "te") << "as written";
  EXPECT_EQ(seconds("2017-04-01T00:00Z", "2017-03-31T23:30:00-05:00,1\n2017-04-01 00:10+09:00,1\n2017-04-02,1\n"),
            "et-")
      << "in UTC; a time without a zone is a bad row";
  EXPECT_EQ(seconds("2017-04-01", "2017-02-30,1\n,1\n01.04.2017,1\n1491004800,0\n2017-04-01x,1\n"), "-----");
  EXPECT_EQ(seconds("2017-04-01 10:30:00.5", "2017-04-01 10:30:00.25,1\n2017-04-01 10:30:00.75,1\n"), "te");
  EXPECT_EQ(seconds("2017-04-01T10", "20170401T095959,1\n2017-04-01T10,1\n20170401T1000Z,1\n2017-04-01T1,1\n"), "tee-")
      << "the basic format, and hours alone";
  EXPECT_EQ(seconds("100", "99,0\n 100,1\n2017-04-01,1\n"), "te-") << "numbers as before";
  SplitCells cells;
  EXPECT_SAYS(message_of([&] { read_split("01.04.2017", cells); }), "or a date such as 2017-04-01");
}

}  // namespace
}  // namespace hctr::data_test
