// The columns of a text file and their roles, for Criteo's click logs and for tables with named columns.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/data/number_notation.h"
#include "formats/data/text_grammar.h"

namespace hctr {

enum class ColumnKind {
  skip,     ///< a column that is not read
  label,    ///< a label: a number
  click,    ///< a label that is 0 or 1
  number,   ///< a dense value; empty: missing
  integer,  ///< a dense value that is an integer; empty: missing
  hex,      ///< a category: up to 8 hexadecimal digits; empty: missing
  text,     ///< a category: any text; empty: missing
  list,     ///< a category with any number of values, separated by list_separator
  split,    ///< a number or a time that separates training rows from evaluation rows
};

/// The type of cells in a split column: numbers, local times, or times with a zone.
enum class SplitCells { numbers, times, times_in_zones };

struct TextColumn {
  std::string name;
  ColumnKind kind = ColumnKind::skip;
  /// index among the columns of its role: labels, dense values or categories
  size_t place = 0;
  std::optional<NumberNotation> notation{};  ///< notation of numbers; none: plain
};

struct TextTable {
  char separator = '\t', list_separator = '|';  ///< list_separator 0 with brackets: BracketedList detects the separator
  bool brackets = false;                        ///< whether lists are in brackets
  bool quotes = false;                          ///< whether fields may be quoted as in CSV
  SplitCells split_cells = SplitCells::numbers;
  std::optional<std::string> header;      ///< the first line of every file; none if files have no header
  std::vector<TextColumn> columns;        ///< columns in file order, then partition columns
  std::vector<std::string> partitions{};  ///< names of partition columns, which records do not contain

  /// The number of cells of each record.
  size_t cells() const { return columns.size() - partitions.size(); }
  /// Whether a partition column has a role.
  bool uses_partitions() const;
  TextGrammar grammar() const { return {.delimiter = separator, .quote = quotes ? '"' : '\0'}; }
  /// The names of a role's columns, in index order.
  std::vector<std::string> labels() const;
  std::vector<std::string> numbers() const;
  std::vector<std::string> categories() const;
  /// The kind of category `place`: hex, text or list.
  ColumnKind category_kind(size_t place) const;
  bool is_list(size_t place) const { return category_kind(place) == ColumnKind::list; }
};

/// The table of Criteo's logs: label, I1..I13, C1..C26, separated by tabs, without a header.
TextTable criteo_table();

/// The columns of each role, in record order.
struct TextRoles {
  std::vector<std::string> labels, numbers, categories, lists;
  std::string split;                                  ///< split column; empty: none
  std::optional<NumberFormat> number_format{};        ///< format of all numbers; none: plain
  std::map<std::string, NumberNotation> notations{};  ///< by column name, if a column has its own notation
};

/// Parses the threshold of a split column, a number or a time: rows with at least this value are evaluation rows. A
/// time becomes seconds since 1970, in UTC if it has a zone. Sets `cells`. Errors: Error(usage) for any other text.
double read_split(std::string_view text, SplitCells& cells);
/// Reads a cell of a split column; numbers may have a notation. Returns false for any other text.
bool read_split_cell(std::string_view text, SplitCells cells, const std::optional<NumberNotation>&, double& value);

/// Makes a table from `names`, a line of CSV, and from the partitions that `names` lacks. List columns come after the
/// other categories. Errors: Error(usage) if `names` is not a line of CSV, if a role names an unknown column (suggests
/// the nearest name), or if a column has two roles.
TextTable named_table(std::string_view names, char separator, const TextRoles&,
                      const std::vector<std::string>& partitions = {});

}  // namespace hctr
