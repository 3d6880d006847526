// Writes random text, converts it with preprocess to each format, and reads it back: labels, dense values and keys are
// the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "formats/catalog/data_schema.h"
#include "formats/data/column_rules.h"
#include "formats/norm/norm_set.h"
#include "formats/parquet/parquet_set.h"
#include "formats/raw/raw_set.h"
#include "formats/text/csv_set.h"
#include "prepare/preprocess/preprocess_report.h"
#include "unit/formats/data/hashed_key.h"
#include "unit/formats/data/parquet_test_files.h"

namespace hctr::data_test {
namespace {

/// A table as parsed by this test: [rows][columns] cells. List cells are split.
struct Table {
  int64_t labels, numbers, categories, lists;
  std::vector<std::vector<std::string>> cells;

  size_t slots() const { return static_cast<size_t>(categories + lists); }
  std::vector<std::string> values(size_t row, size_t slot) const {
    const std::string& cell = cells[row][static_cast<size_t>(labels + numbers) + slot];
    if (slot < static_cast<size_t>(categories)) return {cell};
    std::vector<std::string> values;
    for (size_t begin = 0; begin < cell.size(); begin = cell.find('|', begin) + 1) {
      values.push_back(cell.substr(begin, cell.find('|', begin) - begin));
      if (cell.find('|', begin) == cell.npos) break;
    }
    return values;
  }
};

struct Draw {
  uint64_t state;
  int64_t below(int64_t limit) { return static_cast<int64_t>((state = mix64(state)) % static_cast<uint64_t>(limit)); }
};

Table random_table(Draw& draw, bool lists) {
  Table table{1 + draw.below(3), draw.below(5), 1 + draw.below(5), lists ? 1 + draw.below(2) : 0, {}};
  const int64_t rows = 1 + draw.below(400), values = 1 + draw.below(60);
  for (int64_t r = 0; r < rows; ++r) {
    auto& row = table.cells.emplace_back();
    for (int64_t i = 0; i < table.labels; ++i) row.push_back(std::to_string(draw.below(2)));
    for (int64_t i = 0; i < table.numbers; ++i)
      row.push_back(draw.below(4) == 0 ? "" : cat(draw.below(2) ? "-" : "", draw.below(100), ".", 25 * draw.below(4)));
    for (int64_t i = 0; i < table.categories; ++i)
      row.push_back(draw.below(9) == 0 ? "" : cat("v", draw.below(values)));
    for (int64_t i = 0; i < table.lists; ++i) {
      std::string& cell = row.emplace_back();
      for (int64_t left = draw.below(4); left > 0; --left)
        cell += cat(cell.empty() ? "" : "|", "w", draw.below(values));
    }
  }
  return table;
}

PreprocessOptions options_of(const Table& table, Draw& draw, const fs::path& file) {
  const char separator = ",;\t"[draw.below(3)];
  const std::string line_end = draw.below(2) ? "\n" : "\r\n";
  TextRoles roles;
  std::string header;
  const auto name = [&](std::vector<std::string>& role, const char* kind, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      header += (header.empty() ? "" : std::string(1, separator)) + role.emplace_back(cat(kind, i));
  };
  name(roles.labels, "y", table.labels);
  name(roles.numbers, "x", table.numbers);
  name(roles.categories, "c", table.categories);
  name(roles.lists, "l", table.lists);
  std::string text = header + line_end;
  for (const auto& row : table.cells) {
    for (size_t i = 0; i < row.size(); ++i)
      text += (i > 0 ? std::string(1, separator) : "") + (draw.below(5) == 0 ? "\"" + row[i] + "\"" : row[i]);
    text += line_end + (draw.below(20) == 0 ? line_end : "");
  }
  if (draw.below(2)) text.resize(text.find_last_not_of("\r\n") + 1);
  write_text(file, text);
  PreprocessOptions options;
  options.table = named_table(header, separator, roles);
  options.table.header = header;
  options.inputs = {file.string()};
  options.passes = 1 + static_cast<int>(draw.below(2));
  options.range = 3 + draw.below(1000);
  if (options.passes == 2) options.min_count = 1 + draw.below(4);
  options.check = draw.below(2) ? Check::sum : Check::none;
  options.rows_per_file = 1 + draw.below(300);
  options.threads = 1 + static_cast<int>(draw.below(3));
  return options;
}

/// The id of each value of a slot, by the rules of the manual.
std::map<std::string, int64_t> ids_of(const PreprocessOptions& options, const Table& table, size_t slot) {
  std::map<std::string, int64_t> counts, ids;
  for (size_t row = 0; row < table.cells.size(); ++row)
    for (const std::string& value : table.values(row, slot)) ++counts[value];
  std::vector<std::pair<int64_t, uint64_t>> order;
  std::map<uint64_t, std::string> names;
  for (const auto& [value, count] : counts) {
    names[text_code(value, slot)] = value;
    order.emplace_back(-count, text_code(value, slot));
  }
  std::sort(order.begin(), order.end());
  int64_t next = 2;
  for (const auto& [count, code] : order) {
    int64_t& id = ids[names[code]];
    if (options.passes == 1)
      id = csv_hashed_key(names[code], 0, static_cast<int64_t>(slot), options.range);
    else
      id = names[code].empty() ? 0 : -count < options.min_count ? 1 : next++;
  }
  ids[""] = 0;
  return ids;
}

std::vector<Row> expected_rows(const PreprocessOptions& options, const PreprocessSummary& summary, const Table& table) {
  std::vector<Row> rows(table.cells.size());
  int64_t offset = 0;
  for (size_t slot = 0; slot < table.slots(); ++slot) {
    const auto ids = ids_of(options, table, slot);
    for (size_t r = 0; r < rows.size(); ++r) {
      auto& keys = rows[r].slots.emplace_back();
      for (const std::string& value : table.values(r, slot)) keys.push_back(offset + ids.at(value));
    }
    offset += summary.fitted.slot_sizes[slot];
  }
  for (size_t r = 0; r < rows.size(); ++r)
    for (int64_t i = 0; i < table.labels + table.numbers; ++i) {
      const std::string& cell = table.cells[r][static_cast<size_t>(i)];
      (i < table.labels ? rows[r].label : rows[r].dense).push_back(cell.empty() ? 0.0f : std::stof(cell));
    }
  return rows;
}

TEST(RoundTrip, TextOfAnyShapeComesBackFromEveryFormat) {
  Draw draw{11};
  int read = 0;
  for (int round = 0; round < 40; ++round) {
    const Table table = random_table(draw, round % 2 == 0);
    const Folder folder;
    PreprocessOptions options = options_of(table, draw, folder / "rows.csv");
    for (const DataFormat format : {kNormFormat, kRawFormat, kParquetFormat}) {
      if (format == kRawFormat && table.lists > 0) continue;
      if (format == kParquetFormat && !why_no_parquet().empty()) continue;
      options.format = format;
      options.folder = folder / std::string(format.name);
      for (const int key_bytes : {4, 8}) {
        if (format == kRawFormat && key_bytes == 8) continue;
        options.key_bytes = key_bytes;
        options.force = true;
        const PreprocessSummary summary = preprocess(options, Log::silent());
        Problems problems;
        const DataSection section =
            data_schema().parse(preprocess_data_section(options, summary), "", problems, {"type"});
        problems.throw_if_any("printed section");
        SCOPED_TRACE(cat("round ", round, ", format ", format.name, ", keys of ", key_bytes, " bytes, ",
                         table.cells.size(), " rows"));
        expect_reads(section, options.result("train"), expected_rows(options, summary, table), 1 + draw.below(100));
        if (::testing::Test::HasFailure()) return;
        ++read;
      }
    }
  }
  EXPECT_GE(read, 100);
}

TEST(RoundTrip, TextHashedInOnePassHasTheKeysOfTheCsvReader) {
  const Folder folder;
  std::string text = "click,user,movie,genres\n";
  std::vector<Row> rows;
  constexpr int64_t range = 1000;
  const auto key = [](const std::string& value, int64_t slot) {
    return slot * range + csv_hashed_key(value, 0, slot, range);
  };
  for (int i = 0; i < 300; ++i) {
    const std::string user = cat("user number ", i % 70), movie = cat("m", i % 41), genre = cat("g", i % 7);
    text += cat(i % 2, ",", user, ",", movie, ",", genre, "|", movie, "\n");
    rows.push_back(
        {{static_cast<float>(i % 2)}, {}, {{key(user, 0)}, {key(movie, 1)}, {key(genre, 2), key(movie, 2)}}});
  }
  write_text(folder / "rows.csv", text);
  PreprocessOptions options;
  options.table =
      named_table("click,user,movie,genres", ',',
                  {.labels = {"click"}, .numbers = {}, .categories = {"user", "movie"}, .lists = {"genres"}});
  options.table.header = "click,user,movie,genres";
  options.inputs = {folder / "rows.csv"};
  options.folder = folder / "out";
  options.passes = 1;
  options.range = range;
  const PreprocessSummary summary = preprocess(options, Log::silent());
  Problems problems;
  const DataSection norm = data_schema().parse(preprocess_data_section(options, summary), "", problems, {"type"});
  problems.throw_if_any("printed section");
  expect_reads(norm, options.result("train"), rows);

  DataSection csv = norm;
  csv.format = kCsvFormat;
  csv.slot_size_array.clear();
  CsvOptions& options_of_csv = csv.options.edit<CsvOptions>();
  options_of_csv.labels = {"click"};
  options_of_csv.slots = {{{"user", "movie"}, KeyRule::hash, range, "", "", {}},
                          {{"genres"}, KeyRule::hash, range, "", "|", {}}};
  expect_reads(csv, folder / "rows.csv", rows);
}

}  // namespace
}  // namespace hctr::data_test
