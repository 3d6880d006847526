// The meaning of the columns of a text file: Criteo's click logs, or any table with named columns.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hctr {

enum class ColumnKind {
  skip,     ///< not read
  label,    ///< a number
  click,    ///< a label that is 0 or 1
  number,   ///< a dense value; empty: missing
  integer,  ///< a dense value that is an integer; empty: missing
  hex,      ///< a category: up to 8 hexadecimal digits; empty: missing
  text,     ///< a category: any text; empty: missing
  list,     ///< a category with any number of values, separated by list_separator
  split,    ///< a number that separates training rows from evaluation rows
};

struct TextColumn {
  std::string name;
  ColumnKind kind = ColumnKind::skip;
  size_t place = 0;  ///< among the labels, the dense values, the categories
};

struct TextTable {
  char separator = '\t', list_separator = '|';
  bool quotes = false;                ///< fields may be quoted as in CSV, without line ends inside
  std::optional<std::string> header;  ///< the first line of every file, where there is one
  std::vector<TextColumn> columns;    ///< in the order of the file

  /// Names of the columns of a role, in the order of their places.
  std::vector<std::string> labels() const;
  std::vector<std::string> numbers() const;
  std::vector<std::string> categories() const;
  /// What the category at `place` is: hex, text or list.
  ColumnKind category_kind(size_t place) const;
  bool is_list(size_t place) const { return category_kind(place) == ColumnKind::list; }
};

/// label, I1..I13, C1..C26, separated by tabs, no header. `dense`: number or integer.
TextTable criteo_table(ColumnKind dense = ColumnKind::number);

/// Which columns play which role, in the order of the record.
struct TextRoles {
  std::vector<std::string> labels, numbers, categories, lists;
  std::string split;  ///< empty: none
};

/// A table with the columns that `names` names, one after another. Lists come after the other categories.
/// Errors: Error(usage) for names that are no line of CSV, for a role of a column that is not there (with the nearest
/// one), or of one that has a role already.
TextTable named_table(std::string_view names, char separator, const TextRoles&);

}  // namespace hctr
