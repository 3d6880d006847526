// Text with any columns: rows written as text are read back with any compression, split and column order.
#include "formats/text/csv_set.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/base/platform.h"
#include "formats/catalog/bad_records_file.h"
#include "formats/catalog/data_schema.h"
#include "formats/data/column_rules.h"
#include "formats/data/text_values.h"
#include "formats/text/text_cutters.h"
#include "unit/formats/data/csv_section.h"
#include "unit/formats/data/hashed_key.h"
#include "unit/formats/data/packed_files.h"
#include "unit/formats/data/reader_rig.h"

namespace hctr::data_test {
namespace {

/// A section with label columns L<i>, dense columns D<i> and slot columns S<i>. Keys are numbers, separated by '|'.
DataSection csv_section(int64_t labels, int64_t dense, std::vector<SparseInput> sparse) {
  DataSection section = section_of(labels, dense, std::move(sparse));
  section.format = kCsvFormat;
  for (int64_t i = 0; i < labels; ++i) csv_of(section).labels.push_back(cat("L", i));
  DenseColumns values;
  for (int64_t i = 0; i < dense; ++i) values.columns.push_back(cat("D", i));
  csv_of(section).dense = {values};
  SlotColumns slots;
  slots.keys = KeyRule::number;
  slots.separator = "|";
  for (int64_t i = 0; i < section.slots(); ++i) slots.columns.push_back(cat("S", i));
  csv_of(section).slots = {slots};
  return section;
}

DataSection small_section() { return csv_section(1, 2, {input_of("wide", 1, 4, 4), input_of("deep", 2, 2, 3)}); }

struct TextStyle {
  char delimiter = ',';
  bool quotes = false, header = true, newline_at_end = true, reversed = false;
  std::string line_end = "\n";
};

std::string shortest(float value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", static_cast<double>(value));
  return text;
}

std::string csv_text(const DataSection& section, const std::vector<Row>& rows, const TextStyle& style) {
  std::string text;
  const auto line = [&](std::vector<std::string> cells) {
    cells.insert(cells.begin() + 1, style.quotes ? "not, \"wanted\"\r\n" : "not wanted");
    if (style.reversed) std::reverse(cells.begin(), cells.end());
    for (size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) text += style.delimiter;
      if (!style.quotes) {
        text += cells[i];
        continue;
      }
      text += '"';
      for (const char c : cells[i]) text += c == '"' ? "\"\"" : std::string(1, c);
      text += '"';
    }
    text += style.line_end;
  };
  std::vector<std::string> names;
  for (const auto& name : section.options.get<CsvOptions>().labels) names.push_back(name.column);
  for (const auto& name : section.options.get<CsvOptions>().dense[0].columns) names.push_back(name);
  for (const auto& name : section.options.get<CsvOptions>().slots[0].columns) names.push_back(name);
  if (style.header) line(names);
  for (const Row& row : rows) {
    std::vector<std::string> cells;
    for (const float value : row.label) cells.push_back(shortest(value));
    for (const float value : row.dense) cells.push_back(shortest(value));
    for (const auto& slot : row.slots) {
      std::string keys;
      for (const int64_t key : slot) keys += (keys.empty() ? "" : "|") + std::to_string(key);
      cells.push_back(keys);
    }
    line(cells);
  }
  if (!style.newline_at_end) text.resize(text.size() - style.line_end.size());
  return text;
}

TEST(CsvSet, RowsComeBackForEveryStyleAndPacking) {
  const Folder folder;
  DataSection section = small_section();
  // 30000 rows are several chunks.
  const auto rows = random_rows(section, 30000, 3, int64_t{1} << 62, true);
  for (const bool quotes : {false, true}) {
    if (kSanitized && !quotes) continue;  // with sanitizers, one case per code path is enough
    for (const TextStyle& style : {TextStyle{}, TextStyle{'\t', quotes, true, false, true, "\r\n"},
                                   TextStyle{';', quotes, true, true, true, "\n"}}) {
      csv_of(section).delimiter = std::string(1, style.delimiter);
      csv_of(section).quote = quotes || style.quotes ? "\"" : "";
      const std::string text = csv_text(section, rows, style);
      write_text(folder / "a.csv", text);
      write_gzip(folder / "a.csv.gz", text);
      write_zstd(folder / "a.csv.zst", text);
      for (const std::string file : {"a.csv", "a.csv.gz", "a.csv.zst"}) {
        // with sanitizers, one case per code path is enough
        if (kSanitized && style.delimiter != ',' && file != "a.csv") continue;
        expect_reads(section, folder / file, rows, 1000);
      }
    }
  }
}

TEST(CsvSet, RandomShapesComeBack) {
  const Folder folder;
  uint64_t draw = 3;
  const auto below = [&](uint64_t limit) { return static_cast<int64_t>((draw = mix64(draw)) % limit); };
  for (int round = 0; round < 30; ++round) {
    std::vector<SparseInput> sparse;
    for (int64_t i = below(4); i >= 0; --i) {
      const int64_t slots = 1 + below(5), nnz = 1 + below(4);
      sparse.push_back(
          input_of(cat("x", i), slots, nnz, std::max(slots, 1 + below(static_cast<uint64_t>(slots * nnz)))));
    }
    DataSection section = csv_section(1 + below(3), below(5), sparse);
    const auto rows = random_rows(section, below(300) + 1, draw, uint64_t{1} << (1 + below(62)), below(2) == 0);
    write_text(
        folder / "a",
        csv_text(section, rows, {',', below(2) == 0, true, below(2) == 0, below(2) == 0, below(2) ? "\n" : "\r\n"}));
    expect_reads(section, folder / "a", rows, 1 + below(100));
  }
}

TEST(CsvSet, FilesOfAListMayHaveTheirColumnsInDifferentOrders) {
  const Folder folder;
  const DataSection section = small_section();
  const auto rows = random_rows(section, 100, 3, 1000, true);
  write_text(folder / "a.csv", csv_text(section, {rows.begin(), rows.begin() + 40}, {}));
  write_gzip(folder / "b.csv.gz",
             csv_text(section, {rows.begin() + 40, rows.end()}, {.quotes = true, .reversed = true}));
  write_file_list(folder / "list.txt", {folder / "a.csv", folder / "b.csv.gz"}, true);
  expect_reads(section, folder / "list.txt", rows);
}

TEST(CsvSet, WithoutAHeaderColumnsHaveGivenNamesOrNumbers) {
  const Folder folder;
  DataSection section = small_section();
  const auto rows = random_rows(section, 100, 3, 1000, true);
  write_text(folder / "a.csv", csv_text(section, rows, {.header = false}));
  csv_of(section).header = false;
  csv_of(section).columns = {"L0", "other", "D0", "D1", "S0", "S1", "S2"};
  expect_reads(section, folder / "a.csv", rows);
  csv_of(section).columns = {};
  csv_of(section).labels = {"1"};
  csv_of(section).dense[0].columns = {"3", "4"};
  csv_of(section).slots[0].columns = {"5", "6", "7"};
  expect_reads(section, folder / "a.csv", rows);
  csv_of(section).columns = {"a", "b"};
  EXPECT_SAYS(message_of([&] { expect_reads(section, folder / "a.csv", rows); }),
              "the line has 7 values, but \"columns\" names 2");
}

TEST(CsvSet, DefaultsTransformsAndKeys) {
  const Folder folder;
  write_text(folder / "cities", "Rome\nParis\r\nOslo");
  DataSection section = section_of(1, 4, {input_of("x", 6, 3, 18)});
  section.format = kCsvFormat;
  CsvOptions& csv = csv_of(section);
  csv.labels = {"y"};
  csv.hash_seed = 11;
  csv.dense = {{{"a"}, DenseTransform::none, {}, {}, -1},
               {{"b"}, DenseTransform::log, {}, {}, 0},
               {{"c", "d"}, DenseTransform::standardise, {1, 2}, {4}, 0}};
  csv.slots = {{{"city", "city2"}, KeyRule::vocabulary, 0, (folder / "cities").string(), "", {}},
               {{"h"}, KeyRule::hash, 100, "", "", "none"},
               {{"tags"}, KeyRule::hash, 0, "", "|", {}},
               {{"hex"}, KeyRule::hex, 0, "", "", {}},
               {{"n"}, KeyRule::number, 0, "", " ", {}}};
  write_text(folder / "a",
             "\xEF\xBB\xBFy,a,b,c,d,city,city2,h,tags,hex,n\n"
             "1,2.5,7,5,10,Paris,Rome,x,red||blue,fF,3 2\n"
             "\n"
             "0,,,,,Berlin,,,,,\n"
             "0.25,-3,-7,0,0,Oslo,Oslo,none,\"a\"\"b\",0,7\n");
  const int64_t x = 8 + csv_hashed_key("x", 11, 2, 100), none = 8 + csv_hashed_key("none", 11, 2, 100);
  const auto tag = [](const char* text) { return csv_hashed_key(text, 11, 3, kAllKeys); };
  const auto log8 = static_cast<float>(std::log1p(7.0));
  expect_reads(section, folder / "a",
               {{{1}, {2.5, log8, 1, 2}, {{1}, {4}, {x}, {tag("red"), tag("blue")}, {255}, {3, 2}}},
                {{0}, {-1, 0, 0, 0}, {{3}, {}, {none}, {}, {}, {}}},
                {{0.25}, {-3, 0, -0.25, -0.5}, {{2}, {6}, {none}, {tag("a\"b")}, {0}, {7}}}});
  EXPECT_GE(x, 8) << "keys of the two vocabularies come first: 3 values and one for all others, twice";
  EXPECT_LT(x, 108);
}

TEST(CsvSet, ListsInBracketsGiveTheKeysOfTheirValues) {
  const Folder folder;
  DataSection section = section_of(1, 0, {input_of("x", 3, 4, 12)});
  section.format = kCsvFormat;
  CsvOptions& csv = csv_of(section);
  csv.labels = {"y"};
  csv.missing = {"None", "?"};
  csv.slots = {{{"names"}, KeyRule::hash, 0, "", "", "(none)", "", true},
               {{"ids"}, KeyRule::number, 0, "", "", {}, "", true},
               {{"parts"}, KeyRule::hash, 50, "", ";", {}, "", true}};
  const auto name = [](const char* text) { return csv_hashed_key(text, 0, 0, kAllKeys); };
  const auto part = [](const char* text) { return csv_hashed_key(text, 0, 2, 50); };
  write_text(folder / "a",
             "y,names,ids,parts\n"
             "1,\"['red', 'blue, dark', None]\",\"[3 5\n 8]\",(x y; z)\n"
             "0,,[],[]\n"
             "0,\"[\"\"blue, dark\"\"]\",\"{8, 3}\",?\n"
             "1,[red],7,z\n");
  expect_reads(section, folder / "a",
               {{{1}, {}, {{name("red"), name("blue, dark")}, {3, 5, 8}, {part("x y"), part("z")}}},
                {{0}, {}, {{name("(none)")}, {}, {}}},
                {{0}, {}, {{name("blue, dark")}, {8, 3}, {}}},
                {{1}, {}, {{name("red")}, {7}, {part("z")}}}});
  const auto message = [&](const std::string& line) {
    write_text(folder / "b", "y,names,ids,parts\n" + line);
    return message_of([&] { expect_reads(section, folder / "b", {}); });
  };
  EXPECT_SAYS(message("1,\"[(1, 2), (3, 4)]\",[1],[a]\n"),
              "column 'names': expected a list in brackets, found '[(1, 2), (3, 4)]': the list contains lists");
  EXPECT_SAYS(message("1,[a],\"[1, b]\",[a]\n"),
              "column 'ids': expected an integer from -2^63 to 2^64 - 1, found '[1, b]'");
}

/// The keys of the cells "Oslo" and `cell`, or the error message.
std::string keys_of_vocabulary(const std::string& vocabulary, bool trim = false, const std::string& cell = "Rome") {
  const Folder folder;
  write_text(folder / "cities", vocabulary);
  write_text(folder / "rows", cat("y,city\n1,Oslo\n0,", cell, "\n"));
  DataSection section = section_of(1, 0, {input_of("x", 1, 1, 1)});
  section.format = kCsvFormat;
  CsvOptions& csv = csv_of(section);
  csv.trim = trim;
  csv.labels = {"y"};
  csv.slots = {{{"city"}, KeyRule::vocabulary, 0, (folder / "cities").string(), "", {}}};
  try {
    Rig rig(section, folder / "rows", {.batch = 2, .workers = 1, .repeat = false});
    const std::vector<ReadBatch> batches = rig.all();
    std::string text;
    for (const int64_t key : batches.at(0).keys[0]) text += cat(key, " ");
    return text;
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(CsvSet, VocabulariesAreReadAsCellsAre) {
  EXPECT_EQ(keys_of_vocabulary("Oslo\nRome\n"), "0 1 ");
  EXPECT_EQ(keys_of_vocabulary("\xEF\xBB\xBFOslo\r\nRome\r\n"), "0 1 ") << "a byte order mark";
  const std::string quoted = R"("Rome, ""Lazio""")";
  EXPECT_EQ(keys_of_vocabulary(cat("\"Oslo\"\n", quoted, "\n"), false, quoted), "0 1 ") << "quotes";
  EXPECT_EQ(keys_of_vocabulary("Oslo \n Rome\n", true), "0 1 ") << "blanks that the section trims";
  EXPECT_EQ(keys_of_vocabulary("Oslo \nRome\n"), "2 1 ") << "blanks that are part of cells are part of values";
}

TEST(CsvSet, VocabulariesThatAreNoTextAreNamed) {
  EXPECT_NE(keys_of_vocabulary("Oslo\rRome\r").find("cities': its lines end with a single carriage return"),
            std::string::npos);
  EXPECT_NE(keys_of_vocabulary(std::string("O\0s\0l\0o\0\n\0", 10)).find("cities': it is UTF-16"), std::string::npos);
}

TEST(CsvSet, VocabulariesOfSeveralColumnsAreRefused) {
  const std::string columns = keys_of_vocabulary("Oslo,17\nRome,3\n");
  EXPECT_NE(columns.find("cities' value 1: expected one value per line, found 2 cells"), std::string::npos) << columns;
  const std::string twice = keys_of_vocabulary("Oslo\nRome\n\"Oslo\"\n");
  EXPECT_NE(twice.find("value 3: 'Oslo' is already value 1"), std::string::npos) << twice;
}

TEST(CsvSet, TrimmedCellsMissingTextsAndLabelsOfTexts) {
  const Folder folder;
  DataSection section = section_of(3, 2, {input_of("x", 2, 1, 2)});
  section.format = kCsvFormat;
  CsvOptions& csv = csv_of(section);
  csv.trim = true;
  csv.missing = {"?", "NA"};
  csv.labels = {"y", "income", "rating"};
  csv.labels[1].positive.texts = {">50K", "rich, or so"};
  csv.labels[2].positive.at_least = 4;
  csv.dense = {{{"age", "hours"}, DenseTransform::none, {}, {}, -1}};
  csv.slots = {{{"job", "n"}, KeyRule::hash, 0, "", "", {}}};
  csv.slots[0].fallback = "none";
  const auto key = [](const char* text, int64_t slot) { return csv_hashed_key(text, 0, slot, kAllKeys); };
  write_text(folder / "a",
             "age , y,\tincome,rating, job,hours ,n\n"
             "39, 1, >50K, 4, clerk , ?,1\n"
             "\t ?, 0 ,<=50K,3.9, \" clerk, \\n\" ,40, NA\n"
             "NA,0, \"rich, or so\"\t, 5,\"?\",  , N A\n");
  expect_reads(section, folder / "a",
               {{{1, 1, 1}, {39, -1}, {{key("clerk", 0)}, {key("1", 1)}}},
                {{0, 0, 0}, {-1, 40}, {{key(" clerk, \\n", 0)}, {key("none", 1)}}},
                {{0, 1, 1}, {-1, -1}, {{key("none", 0)}, {key("N A", 1)}}}});
  const auto message = [&](const std::string& line) {
    write_text(folder / "b", "age,y,income,rating,job,hours,n\n" + line);
    return message_of([&] { expect_reads(section, folder / "b", {}); });
  };
  EXPECT_SAYS(message("1,1, ? ,1,a,1,1\n"), "column 'income': expected a text, found '?'");
  EXPECT_SAYS(message("1,1, ,1,a,1,1\n"), "column 'income': expected a text, found nothing");
  EXPECT_SAYS(message("1,NA,x,1,a,1,1\n"), "column 'y': expected a number, found 'NA'");
  EXPECT_SAYS(message("1,1,x,good,a,1,1\n"), "column 'rating': expected a number, found 'good'");
  write_text(folder / "b", "age,y,income,rating,job,hours,n\n1,,?,NA,a,1,1\n");
  Rig without(section, Source{.path = (folder / "b").string(), .labels_optional = true}, {.batch = 1, .repeat = false});
  EXPECT_EQ(without.next()->label, (std::vector<float>{kNoLabel, kNoLabel, kNoLabel}));
}

TEST(CsvSet, ValuesOfListsAreTrimmedAndMayBeMissingAsCells) {
  const Folder folder;
  DataSection section = section_of(1, 0, {input_of("x", 2, 4, 8)});
  section.format = kCsvFormat;
  CsvOptions& csv = csv_of(section);
  csv.labels = {"y"};
  csv.missing = {"NA"};
  csv.slots = {{{"tags"}, KeyRule::hash, 0, "", ";", "none"}, {{"n"}, KeyRule::number, 0, "", "|", {}}};
  write_text(folder / "a", "y,tags,n\n1,a; b;NA;,1|NA|2\n0,NA,NA\n0, ;NA,3\n");
  const auto key = [](const char* text) { return csv_hashed_key(text, 0, 0, kAllKeys); };
  expect_reads(
      section, folder / "a",
      {{{1}, {}, {{key("a"), key(" b")}, {1, 2}}}, {{0}, {}, {{key("none")}, {}}}, {{0}, {}, {{key(" ")}, {3}}}});
  csv.trim = true;
  write_text(folder / "a", "y,tags,n\n1,a; b ;\tNA;, 1| NA |2\n0,NA,NA\n0, ;NA,3\n");
  expect_reads(section, folder / "a",
               {{{1}, {}, {{key("a"), key("b")}, {1, 2}}}, {{0}, {}, {{key("none")}, {}}}, {{0}, {}, {{}, {3}}}});
}

TEST(CsvSet, AnEmptyDefaultGivesNoKeyAsInParquet) {
  const Folder folder;
  DataSection section = section_of(1, 0, {input_of("x", 2, 1, 2)});
  section.format = kCsvFormat;
  csv_of(section).labels = {"y"};
  csv_of(section).slots = {{{"a"}, KeyRule::hash, 0, "", "", ""}, {{"b"}, KeyRule::number, 0, "", "", ""}};
  write_text(folder / "a", "y,a,b\n1,,\n0,x,5\n");
  expect_reads(section, folder / "a", {{{1}, {}, {{}, {}}}, {{0}, {}, {{csv_hashed_key("x", 0, 0, kAllKeys)}, {5}}}});
}

TEST(CsvSet, DelimitersOfSeveralCharacters) {
  const Folder folder;
  DataSection section = small_section();
  // 30000 rows are several chunks.
  const auto rows = random_rows(section, 30000, 3, int64_t{1} << 62, true);
  const std::string text = csv_text(section, rows, {.delimiter = ';'});
  for (const std::string delimiter : {"::", "<tab>", ":; "}) {
    std::string longer;
    for (const char c : text)
      if (c == ';')
        longer += delimiter;
      else
        longer += c;
    csv_of(section).delimiter = delimiter;
    write_text(folder / "a.csv", longer);
    write_gzip(folder / "a.csv.gz", longer);
    for (const char* file : {"a.csv", "a.csv.gz"}) expect_reads(section, folder / file, rows, 1000);
  }
  // With a delimiter of two characters, a quote is an ordinary character.
  csv_of(section).delimiter = "::";
  csv_of(section).slots[0].keys = KeyRule::hash;
  const auto key = [](const char* value, int64_t slot) { return csv_hashed_key(value, 0, slot, kAllKeys); };
  write_text(folder / "b", "L0::D0::D1::S0::S1::S2\n1::2::3::\"a\"::b:::c\n");
  expect_reads(section, folder / "b", {{{1}, {2, 3}, {{key("\"a\"", 0)}, {key("b", 1)}, {key(":c", 2)}}}});
}

TEST(CsvSet, LearnedStatisticsStandardise) {
  const Folder folder;
  DataSection section = section_of(1, 3, {input_of("x", 1, 1, 1)});
  section.format = kCsvFormat;
  CsvOptions& csv = csv_of(section);
  csv.labels = {"y"};
  csv.dense = {{{"a"}, DenseTransform::standardise, {}, {}, {}}, {{"b", "c"}, DenseTransform::standardise, {}, {}, 7}};
  csv.dense[1].transform.log = true;
  csv.slots = {{{"n"}, KeyRule::number, 0, "", "", {}}};
  write_text(folder / "a", "y,a,b,c,n\n1,3,0,7,1\n0,,,-1,2\n");
  EXPECT_SAYS(message_of([&] { expect_reads(section, folder / "a", {}); }),
              "column 'a': \"standardize\" without \"mean\" and \"std\" needs statistics of training data");
  section.statistics = {{"a", false, 1, 4, 9}, {"b", true, 1, 2, 9}, {"c", true, 1, 0.5, 9}, {"a", true, 5, 5, 9}};
  const auto c = static_cast<float>((std::log1p(7.0) - 1) / 0.5);
  expect_reads(section, folder / "a", {{{1}, {0.5, -0.5, c}, {{1}}}, {{0}, {0, 7, -2}, {{2}}}});
}

TEST(CsvSet, WidthsFollowFromTheColumns) {
  const auto parsed = [](const std::string& csv, const std::string& sparse) {
    Problems problems;
    DataSection section = data_section_of(
        Json::parse(cat(R"({"layers": [{"type": "Data", "format": "Csv", "source": "a", "csv": {)", csv,
                        R"(}, "label": {"top": "l"}, "dense": {"top": "d"}, "sparse": [)", sparse, "]}]}"),
                    "x"),
        problems);
    problems.throw_if_any("x");
    return section;
  };
  const std::string csv = R"("labels": ["y", "z"], "dense": [{"columns": ["a"]}, {"columns": ["b", "c"]}], )";
  const std::string plain = R"("slots": [{"columns": ["k", "l"]}, {"columns": ["m"]}])";
  const std::string lists = R"("slots": [{"columns": ["k", "l"]}, {"columns": ["m"], "separator": "|"}])";
  const DataSection one = parsed(csv + plain, R"({"top": "x"})");
  EXPECT_EQ(one.label.label_dim, 2);
  EXPECT_EQ(one.dense.dense_dim, 3);
  EXPECT_EQ(one.sparse[0].slot_num, 3);
  EXPECT_EQ(one.sparse[0].limits().max_nnz, 1);
  EXPECT_EQ(one.sparse[0].max_keys(), 3);
  const DataSection two = parsed(csv + lists, R"({"top": "x"}, {"top": "y", "slot_num": 1, "max_nnz": 5})");
  EXPECT_EQ(two.sparse[0].slot_num, 2);
  EXPECT_EQ(two.sparse[0].limits().max_nnz, 1);
  EXPECT_EQ(two.sparse[1].max_keys(), 5);
  const DataSection none = parsed(R"("labels": "y", )" + plain, R"({"top": "x"})");
  EXPECT_EQ(none.label.label_dim, 1);
  EXPECT_EQ(none.dense.dense_dim, 0);
  const auto message = [&](const std::string& slots, const std::string& sparse) {
    return message_of([&] { parsed(csv + slots, sparse); });
  };
  EXPECT_SAYS(message(lists, R"({"top": "x"})"),
              "/layers/0/sparse/0: sparse input needs \"max_feature_num_per_sample\"");
  EXPECT_SAYS(message(plain, R"({"top": "x"}, {"top": "y"})"),
              "/layers/0/sparse/0: sparse input needs \"slot_num\": there are 3 slots, and 2 inputs");
  EXPECT_SAYS(
      message(plain, R"({"top": "x", "slot_num": 3, "max_nnz": 1}, {"top": "y"})"),
      "/layers/0/sparse/1: sparse input needs \"slot_num\": of 3 slots the other inputs use 3, so no slot is left");
  EXPECT_SAYS(message(plain, R"({"top": "x", "slot_num": 2, "max_nnz": 1})"),
              "/layers/0/sparse: has 2 slots in total, but \"slots\" of \"csv\" names 3 columns");
}

TEST(CsvSet, Every64BitNumberIsAKey) {
  const Folder folder;
  DataSection section = section_of(1, 0, {input_of("s", 2, 2, 3)});
  section.format = kCsvFormat;
  section.options.edit<CsvOptions>().labels = {"y"};
  auto& slots = section.options.edit<CsvOptions>().slots;
  slots.resize(2);
  slots[0].columns = {"n"};
  slots[0].keys = KeyRule::number;
  slots[0].separator = " ";
  slots[1].columns = {"x"};
  slots[1].keys = KeyRule::hex;
  write_text(folder / "a",
             "y,n,x\n0,-1,ffffffffffffffff\n1,-9223372036854775808,8000000000000000\n0,9223372036854775807,7f\n"
             "1,9223372036854775808.0 18446744073709551615,0\n");
  Rig rig(section, folder / "a", {.batch = 4, .repeat = false});
  constexpr int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(rig.next()->keys[0], (std::vector<int64_t>{-1, least, most, least, -1, -1, least, 0x7f, 0}));
}

TEST(CsvSet, EveryCorruptionNamesFileLineByteAndColumn) {
  const Folder folder;
  DataSection section = small_section();
  const std::string header = "L0,D0,D1,S0,S1,S2\n", good = "1,2,3,4,5,6\n";
  const auto message = [&](const std::string& text) {
    write_text(folder / "a", text);
    return message_of([&] { expect_reads(section, folder / "a", {}); });
  };
  const std::string place = "a' line 4, at byte 42: ";
  const auto spoilt = [&](const std::string& line) { return message(header + good + good + line + good); };
  EXPECT_SAYS(spoilt("x,2,3,4,5,6\n"), place + "column 'L0': expected a number, found 'x'");
  EXPECT_SAYS(spoilt(",2,3,4,5,6\n"), place + "column 'L0': expected a number, found nothing");
  EXPECT_SAYS(spoilt("1,2,1e99,4,5,6\n"), place + "column 'D1': expected a number or nothing, found '1e99'");
  EXPECT_SAYS(spoilt("1,2,3,4,-5.5,6\n"),
              place + "column 'S1': expected an integer from -2^63 to 2^64 - 1, found '-5.5'");
  EXPECT_SAYS(spoilt("1,2,3,4,5|18446744073709551616,6\n"), place + "column 'S1': expected an integer from -2^63 to");
  EXPECT_SAYS(spoilt("1,2,3,4,5|5|5,6\n"),
              place + "slot 1 (of sparse input \"deep\") has 3 keys, more than its max_nnz of 2");
  EXPECT_SAYS(spoilt("1,2,3,4,5|5,6|6\n"), place +
                                               "sparse input \"deep\" has 4 keys in this sample up to slot 2, more "
                                               "than its max_feature_num_per_sample of 3");
  EXPECT_SAYS(spoilt("1,2,3,4,5\n"), place + "expected 6 values, found 5");
  EXPECT_SAYS(spoilt("1,2,3,4,5,6,7\n"), place + "expected 6 values, found 7");
  EXPECT_SAYS(spoilt("1,\"2\"x,3,4,5,6\n"), place + "value 2 continues after its closing quote: 'x'");
  EXPECT_SAYS(spoilt("1,\"2,3,4,5,6\n"), place + "the quote that opens value 2 is never closed");
  EXPECT_SAYS(message(""), "a' is empty; expected the names of the columns in its first line");
  EXPECT_SAYS(message("\n\r\n\n"), "a' is empty");
  EXPECT_SAYS(message(header), "a': the data set is empty: its files hold no records");
  EXPECT_SAYS(message("L0,D0,D1,S0,S1,S2,D1\n"), "there are two columns 'D1'; rename one; the columns are 'L0'");
  EXPECT_SAYS(message("L0,D0,S0,S1,S2\n"), "there is no column 'D1'; there are 'L0', 'D0', 'S0', 'S1', 'S2'");
  const std::string whole = header + good;
  write_gzip(folder / "a.gz", whole);
  write_zstd(folder / "a.zst", whole);
  for (const char* file : {"a.gz", "a.zst"}) {
    cut_bytes(folder / file, 9);
    EXPECT_SAYS(message_of([&] { expect_reads(section, folder / file, {}); }), cat(file, "' is damaged or truncated"));
  }
}

TEST(CsvSet, NumbersInOtherNotationsAreRefusedWithTheOneThatIsRead) {
  const Folder folder;
  const DataSection section = csv_section(1, 1, {input_of("x", 1, 1, 1)});
  const auto message = [&](const std::string& row) {
    write_text(folder / "a", "L0,D0,S0\n" + row + "\n");
    return message_of([&] { expect_reads(section, folder / "a", {}); });
  };
  for (const char* cell : {"\"2,750.5\"", "\"9,5\"", "$12", "7 %", "3'100", "(1,250)", "\"1.250,75 \u20ac\""})
    EXPECT_SAYS(message(cat("1,", std::string(cell) == "(1,250)" ? "\"(1,250)\"" : cell, ",a")),
                "expected a number with a decimal point and without units, currency signs and thousands "
                "separators, ");
  EXPECT_SAYS(message("\"1,0\",2,a"),
              "column 'L0': expected a number, found '1,0'; expected a number with a "
              "decimal point and without units");
  EXPECT_SAYS(message("1,2024-05-17 08:30,a"), "dates and times must be numbers: use seconds since 1970");
  EXPECT_TRUE(message("1,many,a").ends_with("found 'many'"));
}

TEST(CsvSet, NumbersAreReadInTheNotationOfTheSectionOrOfTheirColumn) {
  const Folder folder;
  DataSection section = csv_section(1, 3, {input_of("x", 1, 1, 1)});
  CsvOptions& csv = csv_of(section);
  csv.number_format = NumberFormat::points_comma;
  csv.labels[0].positive.at_least = 1000;
  csv.dense = {{.columns = {"D0"}},
               {.columns = {"D1"}, .number_format = NumberFormat::commas_point, .unit = "$"},
               {.columns = {"D2"}, .unit = "%"}};
  write_text(folder / "a", "L0,D0,D1,D2,S0\n\"1.000,5\",1.234,\"$1,234.5\",\"12,5%\",1\n999,\"(1,5)\",,-50 %,2\n");
  Rig rig(section, folder / "a", {.batch = 2, .repeat = false});
  const ReadBatch batch = *rig.next();
  EXPECT_EQ(batch.label, (std::vector<float>{1, 0}));
  EXPECT_EQ(batch.dense, (std::vector<float>{1234, 1234.5, 0.125f, -1.5, 0, -0.5}));
  const auto message = [&](const std::string& row) {
    write_text(folder / "b", "L0,D0,D1,D2,S0\n" + row + "\n");
    return message_of([&] { expect_reads(section, folder / "b", {}); });
  };
  EXPECT_SAYS(message("1,1234.5,$1,1%,1"), "column 'D0': expected a number as 1.234,5 or nothing, found '1234.5'");
  EXPECT_SAYS(message("1,1,1,1%,1"), "column 'D1': expected a number as 1,234.5 with '$' or nothing, found '1'");
  EXPECT_SAYS(message("1,1,$1,0.125,1"), "column 'D2': expected a number as 1.234,5 with '%' or nothing");
  EXPECT_SAYS(message("\"1,000.5\",1,$1,1%,1"), "column 'L0': expected a number as 1.234,5, found '1,000.5'");
}

TEST(CsvSet, RecordsOfOtherDialectsAreRefusedWithTheirCause) {
  const Folder folder;
  DataSection section = csv_section(1, 1, {input_of("x", 1, 1, 1)});
  const auto message = [&](const std::string& rows) {
    write_text(folder / "a", "L0,D0,S0\n" + rows);
    return message_of([&] { expect_reads(section, folder / "a", {}); });
  };
  EXPECT_SAYS(message("1,2,3\n0,\"a \\\"b\",3\n"),
              "line 3, at byte 15: value 2 continues after its closing quote: 'b\"'; a backslash escapes a quote, "
              "delimiter or line end");
  EXPECT_SAYS(message("1,2,3\\,4\n"), "expected 3 values, found 4; a backslash");
  EXPECT_SAYS(message("1,2\\\n,3\n"), "expected 3 values, found 2; a backslash");
  EXPECT_SAYS(message("1,2,3\n# the end\n"), "expected 3 values, found 1; the line looks like a comment");
  EXPECT_SAYS(message("1,1,2,3\n"),
              "expected 3 values, found 4; a cell that contains a delimiter needs quotes; if every row has one "
              "value more than the header, the file has row names of R");
  csv_of(section).header = false;
  csv_of(section).columns = {"L0", "D0", "S0"};
  write_text(folder / "a", "1,2,3\n1,2,3,4\n");
  const std::string plain = message_of([&] { expect_reads(section, folder / "a", {}); });
  EXPECT_TRUE(plain.ends_with("expected 3 values, found 4")) << plain;
}

TEST(CsvSet, BadRecordsMayBeLeftOutAndNothingBehindThemIsMisread) {
  const Folder folder;
  DataSection section = small_section();
  section.bad_records = BadRecordPolicy::skip;
  const auto rows = random_rows(section, 3000, 3, 1000, true);
  std::string text = csv_text(section, {}, {});
  const char* const bad[] = {"x,,2,3,4,5,6\n", "1,2\n", "\"a\"b,\"\n\",,,,,\n", "1,,\"2\n3\",4,5,6,7\n",
                             ",,,,,,,,,,,,\n"};
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string one = csv_text(section, {rows[i]}, {.quotes = i % 2 == 0, .header = false});
    text += one;
    if (i % 7 == 0) text += bad[i / 7 % 5];
  }
  write_text(folder / "a", text);
  write_gzip(folder / "a.gz", text);
  expect_reads(section, folder / "a", rows);
  expect_reads(section, folder / "a.gz", rows);
  Rig rig(section, folder / "a", {.batch = 3000, .workers = 2, .repeat = false});
  rig.all();
  EXPECT_EQ(rig.reader->skipped_records(), 429);
  section.options.edit<BadRecordsSection>() = {(folder / "bad").string()};
  for (const int rank : {1, 0, 0})
    Rig(section, folder / "a", {.batch = 3000, .workers = 2, .repeat = false, .rank = rank, .ranks = 2}).all();
  const std::string aside = read_text(folder / "bad", "");
  EXPECT_EQ(std::ranges::count(aside, '\n'), 429) << "of one rank, and once";
  EXPECT_NE(aside.find(R"("record":4,"offset":)"), std::string::npos) << "a line of the file: a row before has two";
  EXPECT_NE(aside.find(R"("cause":"column 'L0': expected a number, found 'x'"})"), std::string::npos);
}

TEST(CsvSet, PositionsOfTextsAreExactToo) {
  const Folder folder;
  DataSection section = small_section();
  const auto rows = random_rows(section, 40000, 3, int64_t{1} << 60, true);
  const std::string text = csv_text(section, rows, {});
  write_text(folder / "plain", text);
  write_zstd(folder / "packed", text);
  for (const char* quote : {"", "\""})
    for (const char* file : {"plain", "packed"})
      for (const int64_t shuffle : {0, 5000}) {
        csv_of(section).quote = quote;
        const ReaderOptions options{.batch = 3000, .workers = 2, .repeat = true, .shuffle = shuffle};
        Rig whole(section, folder / file, options);
        whole.all(9);
        ReaderOptions later = options;
        later.from = whole.reader->position();
        Rig rig(section, folder / file, later);
        for (int i = 0; i < 8; ++i) expect_equal(*rig.next(), *whole.next());
      }
}

TEST(CsvSet, NoRecordMayBeEndless) {
  const Folder folder;
  for (const char* quote : {"", "\""}) {
    DataSection section = small_section();
    csv_of(section).quote = quote;
    std::string text =
        csv_text(section, {}, {}) + "\"" + std::string(static_cast<size_t>(2 * kLongestRecord) + 1000, 'x');
    write_text(folder / "a", text);
    EXPECT_SAYS(message_of([&] { expect_reads(section, folder / "a", {}); }), "no record ends within 16777216 bytes");
  }
}

TEST(CsvSet, RulesOfTheSection) {
  const auto errors = [](const std::string& csv,
                         const std::string& dims =
                             R"("label": {"top": "l", "label_dim": 1}, "dense": {"top": "d", "dense_dim": 1})") {
    return message_of([&] {
      Problems problems;
      data_section_of(
          Json::parse(cat(R"({"layers": [{"type": "Data", "format": "Csv", "source": "a", )", dims,
                          R"(, "sparse": [{"top": "x", "slot_num": 2, "max_feature_num_per_sample": 2}])", csv, "}]}"),
                      "x"),
          problems);
      problems.throw_if_any("x");
    });
  };
  const std::string good = R"("labels": ["y"], "dense": [{"columns": ["a"]}], "slots": [{"columns": ["b", "c"]}])";
  const auto with = [&](const std::string& more) { return errors(cat(R"(, "csv": {)", good, ", ", more, "}")); };
  EXPECT_EQ(with(R"("delimiter": "\t", "quote": "", "hash_seed": 3)"), "");
  EXPECT_SAYS(errors(""), "/layers/0: Csv data need the object \"csv\"");
  EXPECT_EQ(with(R"("separator": "::", "trim": true, "missing": ["?", "NA"])"), "");
  EXPECT_SAYS(with(R"("delimiter": "")"), "/layers/0/csv/delimiter: expected one character, or up to 16");
  EXPECT_SAYS(with(R"("separator": ":\n")"), "none of them a line end; found \":\\n\"");
  EXPECT_SAYS(with(R"("separator": "::", "delimiter": ",")"),
              "\"separator\" and \"delimiter\" are names of the same field and have different values");
  EXPECT_SAYS(with(R"("separator": "::", "quote": "'")"),
              "/layers/0/csv/quote: cells cannot be quoted if the delimiter has several characters, as in \"::\"");
  EXPECT_SAYS(with(R"("missing": ["?", ""])"), "/layers/0/csv/missing/1: an empty cell is always missing");
  EXPECT_SAYS(with(R"("quote": ",")"), "/layers/0/csv/quote: is also the delimiter");
  EXPECT_SAYS(with(R"("columns": ["y", "a"])"), "/layers/0/csv/columns: the header names the columns");
  EXPECT_SAYS(errors(R"(, "csv": {"labels": ["y", "z"], "dense": [], "slots": [{"columns": ["b"]}]})"),
              "/layers/0/label/label_dim: is 1, but \"labels\" of \"csv\" names 2 columns");
  EXPECT_SAYS(errors(R"(, "csv": {"labels": ["y"], "dense": [], "slots": [{"columns": ["b"]}]})"),
              "/layers/0/dense/dense_dim: is 1, but \"dense\" of \"csv\" names 0 columns");
  EXPECT_SAYS(errors(R"(, "csv": {"labels": ["y"], "dense": [{"columns": ["a"]}], "slots": [{"columns": ["b"]}]})"),
              "/layers/0/sparse: has 2 slots in total, but \"slots\" of \"csv\" names 1 columns");
  const auto labels = [&](const std::string& list) {
    return errors(
        cat(R"(, "csv": {"missing": "?", "dense": [{"columns": ["a"]}], "slots": [{"columns": ["b", "c"]}], )",
            "\"labels\": ", list, "}"));
  };
  EXPECT_EQ(labels(R"("y")"), "");
  EXPECT_EQ(labels(R"({"column": "y", "positive": "yes"})"), "");
  EXPECT_EQ(labels(R"([{"column": "y", "positive": ["yes", "ja"]}])"), "");
  EXPECT_EQ(labels(R"([{"column": "y", "positive": {"at_least": 4}}])"), "");
  EXPECT_SAYS(labels("[3]"),
              "/layers/0/csv/labels/0: label column: expected a string or an object, found the integer 3");
  EXPECT_SAYS(labels("3"), "/layers/0/csv/labels: expected an array of strings or objects, found the integer 3");
  EXPECT_SAYS(labels(R"([{"positive": "yes"}])"), "/layers/0/csv/labels/0: label column needs \"column\"");
  EXPECT_SAYS(labels(R"([{"column": "y", "positiv": "yes"}])"), "did you mean \"positive\"?");
  EXPECT_SAYS(labels(R"([{"column": "y", "positive": 1}])"),
              "/layers/0/csv/labels/0/positive: expected the text of a positive label, an array of such texts, or "
              "{\"at_least\": number}");
  EXPECT_SAYS(labels(R"([{"column": "y", "positive": []}])"), "expected the text of a positive label");
  EXPECT_SAYS(labels(R"([{"column": "y", "positive": ""}])"), "an empty cell is a missing label");
  EXPECT_SAYS(labels(R"([{"column": "y", "positive": {"at_least": "4"}}])"),
              "/layers/0/csv/labels/0/positive/at_least: expected a number");
  EXPECT_SAYS(labels(R"([{"column": "y", "positive": {"at_most": 4}}])"),
              "/layers/0/csv/labels/0/positive/at_most: expected \"at_least\", found \"at_most\"");
  EXPECT_SAYS(labels(R"([{"column": "y", "positive": "?"}])"),
              "/layers/0/csv/labels/0/positive: \"?\" is also in \"missing\", so it is never a label");
  const auto slots = [&](const std::string& more) {
    return errors(cat(R"(, "csv": {"labels": ["y"], "dense": [{"columns": ["a"]}], "slots": [{"columns": ["b", "c"], )",
                      more, "}]}"));
  };
  EXPECT_SAYS(slots(R"("keys": "vocabulary")"),
              "/layers/0/csv/slots/0/vocabulary: \"keys\": \"vocabulary\" needs the file");
  EXPECT_SAYS(slots(R"("vocabulary": "f")"), "/layers/0/csv/slots/0/vocabulary: needs \"keys\": \"vocabulary\"");
  EXPECT_SAYS(slots(R"("keys": "number", "buckets": 5)"), "/layers/0/csv/slots/0/buckets: needs \"keys\": \"hash\"");
  EXPECT_EQ(slots(R"("brackets": true, "separator": ";")"), "");
  EXPECT_SAYS(slots(R"("brackets": true, "separator": "]")"),
              "/layers/0/csv/slots/0/separator: cannot be a separator: lists use brackets and quotes themselves");
  const auto dense = [&](const std::string& more) {
    return errors(cat(R"(, "csv": {"labels": ["y"], "dense": [{"columns": ["a"], )", more,
                      R"(}], "slots": [{"columns": ["b", "c"]}]})"));
  };
  EXPECT_SAYS(dense(R"("transform": "standardise", "mean": [1])"),
              "/layers/0/csv/dense/0/std: expected one number for all columns or 1, one for each column; found 0");
  EXPECT_SAYS(dense(R"("transform": "standardise", "mean": [1], "std": [0])"),
              "/layers/0/csv/dense/0/std: expected positive numbers, found 0");
  EXPECT_SAYS(dense(R"("mean": [1])"), "/layers/0/csv/dense/0/mean: needs \"transform\": \"standardize\"");
  EXPECT_EQ(dense(R"("transform": "standardize")"), "") << "both are learned";
  EXPECT_EQ(dense(R"("transform": ["log", "standardize"], "mean": [1], "std": [2])"), "");
  EXPECT_SAYS(
      dense(R"("transform": ["standardize", "log"])"),
      "/layers/0/csv/dense/0/transform/1: expected each transform once, \"log\" before \"standardize\", found \"log\"");
  EXPECT_SAYS(dense(R"("transform": ["sqrt"])"), "/layers/0/csv/dense/0/transform/0: expected ");
}

/// The rows of a chunk do not depend on the position where reading began. Negative sampling relies on this.
TEST(StreamCutter, CutsTheSameChunksFromTheBeginOfAnyOfThem) {
  Folder folder;
  std::string text;
  for (int r = 0; r < 40; ++r) text += std::string(r % 13 == 4 ? 700'000 : r % 5 == 0 ? 150'000 : 40'000, 'x') + ",1\n";
  const fs::path path = folder / "long.csv";
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  put_bytes(path, {bytes, bytes + text.size()});
  const auto chunks = [&](int64_t from) {
    std::vector<std::pair<int64_t, int64_t>> found;
    StreamCutter cutter(path, {.delimiter = ',', .quote = '"'}, from);
    for (Chunk chunk; cutter.next(chunk);) found.emplace_back(chunk.begin.offset, chunk.bytes);
    return found;
  };
  const auto whole = chunks(0);
  ASSERT_GT(whole.size(), 5u);
  for (size_t i = 1; i < whole.size(); ++i)
    EXPECT_EQ(chunks(whole[i].first), std::vector(whole.begin() + static_cast<ptrdiff_t>(i), whole.end())) << i;
}

}  // namespace
}  // namespace hctr::data_test
