// The columns of a text file and their roles: Criteo's click logs, or any table with named columns.
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
  label,    ///< a number
  click,    ///< a label that is 0 or 1
  number,   ///< a dense value; empty: missing
  integer,  ///< a dense value that is an integer; empty: missing
  hex,      ///< a category: up to 8 hexadecimal digits; empty: missing
  text,     ///< a category: any text; empty: missing
  list,     ///< a category with any number of values, separated by list_separator
  split,    ///< a number or a time that separates training rows from evaluation rows
};

/// The type of the cells of a split column: numbers, times as they are written, or times with a zone.
enum class SplitCells { numbers, times, times_in_zones };

struct TextColumn {
  std::string name;
  ColumnKind kind = ColumnKind::skip;
  size_t place = 0;                          ///< index among the labels, dense values or categories
  std::optional<NumberNotation> notation{};  ///< notation of numbers; none: plain ones
};

struct TextTable {
  char separator = '\t', list_separator = '|';  ///< list_separator 0, with brackets: detected by BracketedList
  bool brackets = false;                        ///< lists stand in brackets
  bool quotes = false;                          ///< fields may be quoted as in CSV
  SplitCells split_cells = SplitCells::numbers;
  std::optional<std::string> header;      ///< the first line of every file, if files have one
  std::vector<TextColumn> columns;        ///< columns in file order, then those of partitions
  std::vector<std::string> partitions{};  ///< the names of the latter, which records do not contain

  /// Cells of each record.
  size_t cells() const { return columns.size() - partitions.size(); }
  /// Whether a column of a partition has a role.
  bool uses_partitions() const;
  TextGrammar grammar() const { return {.delimiter = separator, .quote = quotes ? '"' : '\0'}; }
  /// Returns the names of the columns of a role, in index order.
  std::vector<std::string> labels() const;
  std::vector<std::string> numbers() const;
  std::vector<std::string> categories() const;
  /// Returns the kind of category `place`: hex, text or list.
  ColumnKind category_kind(size_t place) const;
  bool is_list(size_t place) const { return category_kind(place) == ColumnKind::list; }
};

/// Returns the table of Criteo's logs: label, I1..I13, C1..C26, separated by tabs, no header. `dense`: number or
/// integer.
TextTable criteo_table();

/// The columns of each role, in record order.
struct TextRoles {
  std::vector<std::string> labels, numbers, categories, lists;
  std::string split;                                  ///< empty: no such column
  std::optional<NumberFormat> number_format{};        ///< format of all numbers
  std::map<std::string, NumberNotation> notations{};  ///< notations of columns with their own
};

/// Reads the text from which on rows are for evaluation: a number, or a time, which is seconds since 1970, of UTC where
/// it has a zone. Errors: Error(usage) for any other text.
double read_split(std::string_view text, SplitCells& cells);
/// Reads a cell of a split column, numbers in a notation. False if it is not such a value.
bool read_split_cell(std::string_view text, SplitCells cells, const std::optional<NumberNotation>&, double& value);

/// Makes a table with the columns of `names`, a line of CSV, lists, and `partitions`, except those named in it. List
/// columns come after the other categories. Errors: Error(usage) when `names` is not a line of CSV, for a role of an
/// unknown column (suggests the nearest name), and for a second role of a column.
TextTable named_table(std::string_view names, char separator, const TextRoles&,
                      const std::vector<std::string>& partitions = {});

}  // namespace hctr
