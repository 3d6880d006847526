#include "prepare/preprocess/table_parser.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/expect.h"
#include "formats/data/bracketed_list.h"
#include "formats/data/cell_notation.h"
#include "formats/data/text_grammar.h"
#include "formats/data/text_values.h"
#include "formats/io/source_files.h"
#include "formats/text/criteo_rows.h"
#include "formats/text/dialect_hint.h"

namespace hctr {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

/// Whether the text is a NaN, as NumPy and pandas write it.
bool is_nan(std::string_view text) {
  text = without_blanks(text);
  return text == "nan" || text == "NaN" || text == "NAN";
}

/// Reads a number like the data readers. An empty cell and the word NaN become NaN.
bool read_dense(std::string_view cell, double& value) {
  const bool negative = cell.starts_with('-');
  int64_t whole = 0;
  size_t at = negative;
  for (; at < cell.size() && cell[at] >= '0' && cell[at] <= '9' && at < 18; ++at) whole = whole * 10 + (cell[at] - '0');
  if (at > negative && at == cell.size()) {
    value = static_cast<double>(negative ? -whole : whole);
    return true;
  }
  if (!cell.empty() && read_number(cell, value)) return true;
  value = kNothing;
  return cell.empty() || is_nan(cell);
}

/// Reads a number in a notation, or in plain notation if there is none.
bool read_dense(std::string_view cell, const std::optional<NumberNotation>& notation, double& value) {
  if (!notation) return read_dense(cell, value);
  if (!cell.empty() && read_number(*notation, cell, value)) return true;
  value = kNothing;
  return cell.empty() || is_nan(cell);
}

bool read_dense_integer(std::string_view cell, double& value) {
  int64_t integer = 0;
  value = kNothing;
  if (cell.empty()) return true;
  if (!read_whole_number(cell, integer)) return false;
  value = static_cast<double>(integer);
  return true;
}

bool read_hex_code(std::string_view cell, uint64_t& code) {
  code = kMissing;
  if (cell.empty()) return true;
  if (cell.size() == 8) {
    const int64_t value = eight_hex_digits(cell.data());
    code = kFirstValue + static_cast<uint64_t>(value);
    return value >= 0;
  }
  if (cell.size() > 8) return false;
  uint64_t value = 0;
  if (!read_hex(cell, value)) return false;
  code = kFirstValue + value;
  return true;
}

/// Whether the number, rounded, fits int32. A NaN (missing value) passes and is replaced later.
bool is_int32(double value) { return !(std::fabs(value) > std::numeric_limits<int32_t>::max()); }
/// Whether a label is whole and fits int32. The bound is 2^31, because a float cannot represent 2^31 - 1.
bool is_whole_int32(float label) { return std::fabs(label) < 0x1p31f && label == std::floor(label); }

/// Describes the valid cells of a column for messages.
std::string expected_of(const TextColumn& column, SplitCells split) {
  const ColumnKind kind = column.kind;
  if (kind == ColumnKind::split && split == SplitCells::times) return "a date such as 2017-04-01 or 2017-04-01T12:30";
  if (kind == ColumnKind::split && split == SplitCells::times_in_zones)
    return "a time with its zone, such as 2017-04-01T12:30+02:00";
  switch (kind) {
    case ColumnKind::click:
      return "0 or 1";
    case ColumnKind::number:
    case ColumnKind::label:
      return describe(column.notation.value_or(NumberNotation())) + (kind == ColumnKind::number ? " or nothing" : "");
    case ColumnKind::split:
      return "a number, because --split has a number (use a date such as 2017-04-01 to split by date)";
    case ColumnKind::integer:
      return "an integer or nothing";
    default:
      return "up to 8 hexadecimal digits or nothing";
  }
}

std::string hint_of(const TextColumn& column, std::string_view cell) {
  return column.notation ? std::string() : number_hint(cell, "--number-format and --unit are set");
}

}  // namespace

uint64_t text_code(std::string_view text, size_t category) {
  const uint64_t code = text_hash(text, slot_seed(0, static_cast<int64_t>(category)));
  return code < kFirstValue ? code + kFirstValue : code;
}

TableParser::TableParser(TextTable table, const BadRows& bad_rows, uint64_t modulo, bool as_integers)
    : table_(std::move(table)),
      bad_rows_(bad_rows),
      modulo_(modulo),
      as_integers_(as_integers),
      labels_(table_.labels().size()),
      numbers_(table_.numbers().size()),
      categories_(table_.categories().size()) {
  for (const TextColumn& column : table_.columns) splits_ |= column.kind == ColumnKind::split;
  uses_partitions_ = table_.uses_partitions();
}

/// The values of the partitions in the file's path, in column order; empty if no role uses them.
std::vector<std::string> TableParser::partitions_of(const std::string& file) const {
  std::vector<std::string> values;
  if (!uses_partitions_) return values;
  const std::vector<Partition> partitions = partitions_in(file);
  for (const std::string& name : table_.partitions) {
    const auto found =
        std::find_if(partitions.begin(), partitions.end(), [&](const Partition& one) { return one.name == name; });
    if (found == partitions.end())
      throw Error(Kind::data, cat("'", file, "' lacks the partition '", name, "' that the first file has"));
    values.push_back(found->value);
  }
  return values;
}

/// Reads the values of a list cell. Returns the problem, or an empty text.
std::string TableParser::read_list(std::string_view cell, const TextColumn& column, ParsedRows& rows) const {
  ParsedRows::Category& list = rows.categories[column.place];
  list.codes.resize(rows.rows == 0 ? 0 : list.ends[rows.rows - 1]);
  const auto add = [&](std::string_view value) {
    list.codes.push_back(limited(text_code(value, column.place)));
    return true;
  };
  if (!table_.brackets) {
    for_each_value(cell, table_.list_separator, add);
  } else {
    thread_local BracketedList values;
    if (!values.read(cell, table_.list_separator))
      return cat("column ", column.name, ": expected a list in brackets, found '", cell.substr(0, 40),
                 "': ", values.problem());
    for (const std::string_view value : values.values()) add(value);
  }
  list.ends[rows.rows] = static_cast<uint32_t>(list.codes.size());
  return "";
}

/// Reads a cell with one value. Returns whether the cell has the form that its column requires.
bool TableParser::read_cell(std::string_view cell, const TextColumn& column, ParsedRows& rows) const {
  const size_t row = rows.rows;
  switch (column.kind) {
    case ColumnKind::number:
      return read_dense(cell, column.notation, rows.numbers[column.place][row]);
    case ColumnKind::integer:
      return read_dense_integer(cell, rows.numbers[column.place][row]);
    case ColumnKind::hex: {
      uint64_t code = 0;
      const bool good = read_hex_code(cell, code);
      rows.categories[column.place].codes[row] = code < kFirstValue ? code : limited(code);
      return good;
    }
    case ColumnKind::text:
      rows.categories[column.place].codes[row] = cell.empty() ? kMissing : limited(text_code(cell, column.place));
      return true;
    case ColumnKind::click:
      return read_click(cell, rows.labels[column.place][row]);
    case ColumnKind::label: {
      double value = 0;
      const bool good = read_dense(cell, column.notation, value) && !std::isnan(value);
      rows.labels[column.place][row] = static_cast<float>(value);
      return good;
    }
    case ColumnKind::split:
      return read_split_cell(cell, table_.split_cells, column.notation, rows.split[row]);
    case ColumnKind::list:
    case ColumnKind::skip:
      break;
  }
  return true;
}

/// Whether the current row's value in a column can be written as an int32.
bool TableParser::fits_integer(const TextColumn& column, const ParsedRows& rows) const {
  if (column.kind == ColumnKind::number || column.kind == ColumnKind::integer)
    return is_int32(rows.numbers[column.place][rows.rows]);
  return column.kind != ColumnKind::label || is_whole_int32(rows.labels[column.place][rows.rows]);
}

/// Parses the cells of a line, followed by partition values if any, into row `rows.rows`. Returns the problem, or an
/// empty text.
std::string TableParser::parse_row(std::span<const std::string_view> cells, ParsedRows& rows) const {
  for (size_t i = 0; i < cells.size(); ++i) {
    const TextColumn& column = table_.columns[i];
    const std::string_view cell = cells[i];
    const bool label = column.kind == ColumnKind::label;
    if (column.kind == ColumnKind::list) {
      if (std::string problem = read_list(cell, column, rows); !problem.empty()) return problem;
    } else if (!read_cell(cell, column, rows)) {
      return cat("column ", column.name, ": expected ", expected_of(column, table_.split_cells), ", found '",
                 cell.substr(0, 40), "'", column.kind == ColumnKind::number || label ? hint_of(column, cell) : "");
    } else if (as_integers_ && !fits_integer(column, rows)) {
      return cat("column ", column.name, ": --integers writes ", label ? "integer labels" : "numbers",
                 " below 2^31, found '", cell.substr(0, 40), "'");
    }
  }
  return "";
}

/// Makes room for up to `most` rows, and removes all rows.
void TableParser::clear(size_t most, ParsedRows& rows) const {
  rows.rows = 0;
  rows.bad = {};
  rows.index.resize(most);
  rows.begin.resize(most);
  rows.labels.resize(labels_);
  rows.numbers.resize(numbers_);
  rows.categories.resize(categories_);
  for (auto& column : rows.labels) column.resize(most);
  for (auto& column : rows.numbers) column.resize(most);
  for (const TextColumn& column : table_.columns) {
    if (column.kind == ColumnKind::list) rows.categories[column.place].ends.resize(most);
    if (column.kind != ColumnKind::hex && column.kind != ColumnKind::text) continue;
    rows.categories[column.place].codes.resize(most);
    rows.categories[column.place].ends.clear();
  }
  if (splits_) rows.split.resize(most);
}

void TableParser::parse(const TextBlock& block, ParsedRows& rows) const {
  const char *p = block.text.data(), *end = p + block.text.size();
  clear(static_cast<size_t>(std::count(p, end, '\n')), rows);
  RecordSplitter splitter(table_.grammar());
  const std::vector<std::string> partitions = partitions_of(block.file);
  std::vector<std::string_view> with_partitions;
  int64_t index = block.first_row, line = block.first_line;
  for (const char* counted = p; p < end;) {
    const char* const start = p;
    p = splitter.split(p, end);
    if (is_blank(splitter.cells())) continue;
    std::string problem = splitter.problem();
    if (problem.empty() && splitter.cells().size() != table_.cells()) {
      problem =
          cat("expected ", table_.cells(), " fields separated by ",
              table_.separator == '\t' ? "tabs" : cat("'", table_.separator, "'"), ", found ", splitter.cells().size());
    } else if (problem.empty() && partitions.empty()) {
      problem = parse_row(splitter.cells(), rows);
    } else if (problem.empty()) {
      with_partitions.assign(splitter.cells().begin(), splitter.cells().end());
      with_partitions.insert(with_partitions.end(), partitions.begin(), partitions.end());
      problem = parse_row(with_partitions, rows);
    }
    if (!splitter.problem().empty() || splitter.cells().size() != table_.cells())
      problem += dialect_hint({.text = {start, p},
                               .expected = table_.cells(),
                               .found = splitter.cells().size(),
                               .header = table_.header.has_value()},
                              table_.grammar());
    if (problem.empty()) {
      rows.begin[rows.rows] = static_cast<size_t>(start - block.text.data());
      rows.index[rows.rows++] = index;
    } else {
      line += std::count(counted, start, '\n');
      counted = start;
      // After an unclosed quote, the end of the row is unknown, so the row cannot be skipped.
      rows.bad.add(splitter.unclosed() ? BadRows{} : bad_rows_, block, line, start, problem);
    }
    ++index;
  }
  for (const TextColumn& column : table_.columns)  // removes values that a bad last row may have left
    if (column.kind == ColumnKind::list)
      rows.categories[column.place].codes.resize(rows.rows == 0 ? 0
                                                                : rows.categories[column.place].ends[rows.rows - 1]);
}

}  // namespace hctr
