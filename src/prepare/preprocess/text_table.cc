#include "prepare/preprocess/text_table.h"

#include <algorithm>

#include "config/problems.h"
#include "core/base/expect.h"
#include "formats/data/text_grammar.h"
#include "formats/data/text_values.h"
#include "formats/text/criteo_rows.h"
#include "prepare/preprocess/iso_time.h"

namespace hctr {
namespace {

bool is_category(ColumnKind kind) {
  return kind == ColumnKind::hex || kind == ColumnKind::text || kind == ColumnKind::list;
}

template <class Wanted>
std::vector<std::string> names_of(const TextTable& table, const Wanted& wanted) {
  std::vector<std::pair<size_t, std::string>> found;
  for (const TextColumn& column : table.columns)
    if (wanted(column.kind)) found.emplace_back(column.place, column.name);
  std::sort(found.begin(), found.end());
  std::vector<std::string> names;
  for (auto& [place, name] : found) names.push_back(std::move(name));
  return names;
}

}  // namespace

std::vector<std::string> TextTable::labels() const {
  return names_of(*this, [](ColumnKind kind) { return kind == ColumnKind::label || kind == ColumnKind::click; });
}
std::vector<std::string> TextTable::numbers() const {
  return names_of(*this, [](ColumnKind kind) { return kind == ColumnKind::number || kind == ColumnKind::integer; });
}
std::vector<std::string> TextTable::categories() const { return names_of(*this, is_category); }

ColumnKind TextTable::category_kind(size_t place) const {
  const auto found = std::find_if(columns.begin(), columns.end(), [&](const TextColumn& column) {
    return is_category(column.kind) && column.place == place;
  });
  HCTR_EXPECT(found != columns.end(), "a table without category ", place);
  return found->kind;
}

TextTable criteo_table() {
  TextTable table;
  table.columns.push_back({"label", ColumnKind::click, 0});
  for (size_t i = 0; i < kCriteoIntegers; ++i) table.columns.push_back({cat("I", i + 1), ColumnKind::integer, i});
  for (size_t i = 0; i < kCriteoCategories; ++i) table.columns.push_back({cat("C", i + 1), ColumnKind::hex, i});
  return table;
}

double read_split(std::string_view text, SplitCells& cells) {
  cells = SplitCells::numbers;
  if (double number = 0; read_number(text, number)) return number;
  const std::optional<IsoTime> time = read_iso_time(text);
  if (!time)
    throw Error(
        Kind::usage,
        cat("--split: expected a number, or a date such as 2017-04-01 or 2017-04-01T12:30, found '", text, "'"));
  cells = time->minutes_from_utc ? SplitCells::times_in_zones : SplitCells::times;
  return time->utc_seconds();
}

bool read_split_cell(std::string_view text, SplitCells cells, const std::optional<NumberNotation>& notation,
                     double& value) {
  if (cells == SplitCells::numbers) return notation ? read_number(*notation, text, value) : read_number(text, value);
  const std::optional<IsoTime> time = read_iso_time(text);
  if (!time || (cells == SplitCells::times_in_zones && !time->minutes_from_utc)) return false;
  value = cells == SplitCells::times ? time->seconds : time->utc_seconds();
  return true;
}

bool TextTable::uses_partitions() const {
  return std::any_of(columns.begin() + static_cast<ptrdiff_t>(cells()), columns.end(),
                     [](const TextColumn& column) { return column.kind != ColumnKind::skip; });
}

TextTable named_table(std::string_view names, char separator, const TextRoles& roles,
                      const std::vector<std::string>& partitions) {
  TextTable table{.separator = separator, .quotes = true, .header = {}, .columns = {}};
  RecordSplitter splitter({separator, '"'});
  splitter.split(names.data(), names.data() + names.size());
  if (!splitter.problem().empty()) throw Error(Kind::usage, cat("the names of the columns: ", splitter.problem()));
  std::vector<std::string> all(splitter.cells().begin(), splitter.cells().end());
  for (const std::string& partition : partitions) {
    if (std::find(all.begin(), all.end(), partition) != all.end()) continue;
    all.push_back(partition);
    table.partitions.push_back(partition);
  }
  for (const std::string& name : all) {
    if (std::count(all.begin(), all.end(), name) > 1)
      throw Error(Kind::usage, cat("two columns have the name \"", name, "\""));
    table.columns.push_back({.name = name});
  }
  const auto give = [&](const std::string& name, ColumnKind kind, size_t place) {
    const auto found = std::find_if(table.columns.begin(), table.columns.end(),
                                    [&](const TextColumn& column) { return column.name == name; });
    if (found == table.columns.end()) {
      const std::string hint = did_you_mean(name, all);
      throw Error(Kind::usage,
                  cat("there is no column \"", name, "\"", hint.empty() ? cat("; there is ", one_of(all)) : hint));
    }
    if (found->kind != ColumnKind::skip)
      throw Error(Kind::usage, cat("the column \"", name, "\" has two roles; expected one"));
    found->kind = kind;
    found->place = place;
  };
  const auto give_all = [&](const std::vector<std::string>& columns, ColumnKind kind, size_t first) {
    for (size_t i = 0; i < columns.size(); ++i) give(columns[i], kind, first + i);
  };
  give_all(roles.labels, ColumnKind::label, 0);
  give_all(roles.numbers, ColumnKind::number, 0);
  give_all(roles.categories, ColumnKind::text, 0);
  give_all(roles.lists, ColumnKind::list, roles.categories.size());
  if (!roles.split.empty()) give(roles.split, ColumnKind::split, 0);
  for (TextColumn& column : table.columns) {
    const bool number =
        column.kind == ColumnKind::label || column.kind == ColumnKind::number || column.kind == ColumnKind::split;
    const auto own = roles.notations.find(column.name);
    if (own != roles.notations.end() && !number)
      throw Error(Kind::usage, cat("the column \"", column.name,
                                   "\" is not a label or dense value, so it cannot have a number "
                                   "format"));
    const NumberNotation notation =
        (own == roles.notations.end() ? NumberNotation() : own->second).within(roles.number_format);
    if (number && !notation.plain()) column.notation = notation;
  }
  for (const auto& [name, notation] : roles.notations)
    if (std::find(all.begin(), all.end(), name) == all.end())
      throw Error(Kind::usage, cat("there is no column \"", name, "\"", did_you_mean(name, all)));
  if (roles.labels.empty())
    throw Error(Kind::usage, cat("--label is missing: which of ", one_of(all), " is the label?"));
  return table;
}

}  // namespace hctr
