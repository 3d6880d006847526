#include "prepare/preprocess/text_parser.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "data/text_values.h"

namespace hctr {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

constexpr std::array<uint8_t, 256> hex_digits() {
  std::array<uint8_t, 256> digits{};
  digits.fill(255);
  for (uint8_t i = 0; i < 10; ++i) digits['0' + i] = i;
  for (uint8_t i = 0; i < 6; ++i) digits['a' + i] = digits['A' + i] = static_cast<uint8_t>(10 + i);
  return digits;
}
constexpr std::array<uint8_t, 256> kHexDigits = hex_digits();

/// Where a field ends: a separator, or the end of the line, which every block has.
struct Field {
  char separator;
  bool quotes;

  bool ends(const char* p) const { return *p == separator || *p == '\n' || (*p == '\r' && p[1] == '\n'); }

  /// The text of the field at `p`, unquoted into `scratch` where it has quotes, and where it ends; null when its quotes
  /// are not right.
  const char* text(const char* p, std::string_view& found, std::string& scratch) const {
    if (!quotes || *p != '"') {
      const char* end = p;
      while (!ends(end)) ++end;
      found = {p, static_cast<size_t>(end - p)};
      return end;
    }
    scratch.clear();
    for (++p; *p != '\n'; ++p) {
      if (*p == '"' && *++p != '"') break;
      scratch += *p;
    }
    found = scratch;
    return ends(p) ? p : nullptr;
  }
};

/// A number that is all of `text`; NaN for nothing; false for anything else, infinities among it.
bool whole_number(std::string_view text, double& value) {
  value = kNothing;
  if (text.empty()) return true;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !std::isinf(value);
}

const char* read_number(const Field& field, const char* p, double& value) {
  const bool negative = *p == '-';
  const char* digits = p + negative;
  int64_t whole = 0;
  const char* q = digits;
  for (; *q >= '0' && *q <= '9' && q - digits < 18; ++q) whole = whole * 10 + (*q - '0');
  if (q > digits && field.ends(q)) {
    value = static_cast<double>(negative ? -whole : whole);
    return q;
  }
  std::string_view text;
  std::string scratch;
  const char* end = field.text(p, text, scratch);
  return end && whole_number(text, value) ? end : nullptr;
}

const char* read_hex(const Field& field, const char* p, uint64_t& code) {
  uint64_t value = 0;
  int count = 0;
  for (; count < 9; ++count) {
    const uint8_t digit = kHexDigits[static_cast<uint8_t>(p[count])];
    if (digit > 15) break;
    value = value << 4 | digit;
  }
  code = count == 0 ? kMissing : kFirstValue + value;
  return count < 9 && field.ends(p + count) ? p + count : nullptr;
}

template <class Visit>
void for_each_part(std::string_view text, char separator, const Visit& visit) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end > 0) visit(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

uint64_t text_code(std::string_view text, size_t category) {
  const uint64_t code = text_hash(text, slot_seed(0, static_cast<int64_t>(category)));
  return code < kFirstValue ? code + kFirstValue : code;
}

TextParser::TextParser(TextTable table, const BadRows& bad_rows, uint64_t modulo)
    : table_(std::move(table)),
      bad_rows_(bad_rows),
      modulo_(modulo),
      labels_(table_.labels().size()),
      numbers_(table_.numbers().size()),
      categories_(table_.categories().size()) {
  for (const TextColumn& column : table_.columns) splits_ |= column.kind == ColumnKind::split;
}

/// Reads the line at `p` into row `rows.rows`; returns where the line ends, or null when it is not right.
const char* TextParser::parse_line(const char* p, ParsedRows& rows) const {
  const Field field{table_.separator, table_.quotes};
  const size_t row = rows.rows;
  std::string scratch;
  std::string_view text;
  bool first = true;
  for (const TextColumn& column : table_.columns) {
    if (!first && *p++ != table_.separator) return nullptr;
    first = false;
    switch (column.kind) {
      case ColumnKind::number:
        p = read_number(field, p, rows.numbers[column.place][row]);
        break;
      case ColumnKind::hex: {
        uint64_t code = 0;
        p = read_hex(field, p, code);
        rows.categories[column.place].codes[row] = code < kFirstValue ? code : limited(code);
        break;
      }
      case ColumnKind::text:
        p = field.text(p, text, scratch);
        rows.categories[column.place].codes[row] = text.empty() ? kMissing : limited(text_code(text, column.place));
        break;
      case ColumnKind::list: {
        ParsedRows::Category& list = rows.categories[column.place];
        list.codes.resize(row == 0 ? 0 : list.ends[row - 1]);
        p = field.text(p, text, scratch);
        for_each_part(text, table_.list_separator,
                      [&](std::string_view part) { list.codes.push_back(limited(text_code(part, column.place))); });
        list.ends[row] = static_cast<uint32_t>(list.codes.size());
        break;
      }
      case ColumnKind::click:
        if (*p != '0' && *p != '1') return nullptr;
        rows.labels[column.place][row] = *p++ == '1' ? 1.0f : 0.0f;
        break;
      case ColumnKind::label: {
        double value = 0;
        p = read_number(field, p, value);
        if (std::isnan(value)) return nullptr;
        rows.labels[column.place][row] = static_cast<float>(value);
        break;
      }
      case ColumnKind::split:
        p = read_number(field, p, rows.split[row]);
        if (std::isnan(rows.split[row])) return nullptr;
        break;
      case ColumnKind::skip:
        p = field.text(p, text, scratch);
        break;
    }
    if (!p) return nullptr;
  }
  if (*p == '\r') ++p;
  return *p == '\n' ? p : nullptr;
}

void TextParser::parse(const TextBlock& block, ParsedRows& rows) const {
  const char *p = block.text.data(), *end = p + block.text.size();
  const auto most = static_cast<size_t>(std::count(p, end, '\n'));
  rows.rows = 0;
  rows.bad = {};
  rows.index.resize(most);
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

  int64_t index = block.first_row;
  for (int64_t line = block.first_line; p < end; ++line) {
    if (*p == '\n' || (*p == '\r' && p[1] == '\n')) {
      p += *p == '\r' ? 2 : 1;
      continue;
    }
    if (const char* stop = parse_line(p, rows)) {
      rows.index[rows.rows++] = index;
      p = stop + 1;
    } else {
      const char* newline = std::find(p, end, '\n');
      rows.bad.add(bad_rows_, block, line, p,
                   rows.bad.count == 0 ? what_is_wrong({p, static_cast<size_t>(newline - p)}) : "");
      p = newline + 1;
    }
    ++index;
  }
  for (const TextColumn& column : table_.columns)  // a bad last row may have left values
    if (column.kind == ColumnKind::list)
      rows.categories[column.place].codes.resize(rows.rows == 0 ? 0
                                                                : rows.categories[column.place].ends[rows.rows - 1]);
}

std::string TextParser::what_is_wrong(std::string_view line) const {
  if (line.ends_with('\r')) line.remove_suffix(1);
  const std::string copy = std::string(line) + "\n";
  const Field field{table_.separator, table_.quotes};
  const std::string separator = table_.separator == '\t' ? "tabs" : cat("'", table_.separator, "'");
  std::string scratch;
  size_t fields = 0;
  std::string problem;
  for (const char* p = copy.data();; ++p) {
    std::string_view text;
    const char* end = field.text(p, text, scratch);
    const std::string column = fields < table_.columns.size() ? table_.columns[fields].name : cat(fields + 1);
    if (!end)
      return cat("column ", column,
                 ": a quote inside a field needs another one in front of it, and the field quotes around it");
    const auto unexpected = [&](const char* expected) {
      if (problem.empty())
        problem = cat("column ", column, ": expected ", expected, ", found '", text.substr(0, 40), "'");
    };
    double value = 0;
    uint64_t code = 0;
    switch (fields < table_.columns.size() ? table_.columns[fields].kind : ColumnKind::skip) {
      case ColumnKind::click:
        if (text != "0" && text != "1") unexpected("0 or 1");
        break;
      case ColumnKind::label:
      case ColumnKind::split:
        if (!whole_number(text, value) || std::isnan(value)) unexpected("a number");
        break;
      case ColumnKind::number:
        if (!whole_number(text, value)) unexpected("a number or nothing");
        break;
      case ColumnKind::hex:
        if (!read_hex(field, p, code)) unexpected("up to 8 hexadecimal digits or nothing");
        break;
      default:
        break;
    }
    ++fields;
    p = end;
    if (*p != table_.separator) break;
  }
  if (fields != table_.columns.size())
    return cat("expected ", table_.columns.size(), " fields separated by ", separator, ", found ", fields);
  return problem.empty() ? "does not make sense" : problem;
}

}  // namespace hctr
