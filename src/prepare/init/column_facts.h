// Facts about a column from one pass over the rows.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>

#include "core/base/moments.h"
#include "formats/data/bracketed_list.h"
#include "formats/data/text_values.h"
#include "prepare/init/notation_facts.h"
#include "prepare/inspect/distinct_count.h"

namespace hctr {

/// Whether a non-empty text means a missing value: "?", "NA", "null" and similar.
bool is_missing_mark(std::string_view text);

/// Characters that may separate the values of a list inside a cell, the likelier ones first.
inline constexpr std::array<char, 8> kListSeparators = {'|', ';', ',', '/', '^', '~', '#', ' '};
/// Possible separators of values in brackets: commas or blanks, as BracketedList detects, or one of these characters.
inline constexpr std::array<char, 3> kSeparatorsInBrackets = {'\0', ';', '|'};
/// Ways to split a cell: by each of kListSeparators, then in brackets by each of kSeparatorsInBrackets.
inline constexpr size_t kFirstInBrackets = kListSeparators.size();
inline constexpr size_t kListForms = kFirstInBrackets + kSeparatorsInBrackets.size();

/// Facts about cells, read as lists of one form.
struct ListFacts {
  int64_t cells = 0;         ///< cells with the separator
  int64_t most = 0;          ///< values in the longest cell
  int64_t looked_at = 0;     ///< values in the cells whose values were looked at
  int64_t integers = 0;      ///< integers among these
  int64_t distinct = 0;      ///< different ones among these
  int64_t padded = 0;        ///< values among these with blanks around them
  bool empty_start = false;  ///< a cell begins or ends with the separator
  int64_t refused = 0;       ///< cells in brackets, also in rows to evaluate on, that are not such lists
  std::string refused_cell;  ///< the first of them, and why
};

/// Cells of a column, one after the other.
class ColumnFacts {
 public:
  /// A cell of a text, or a value of a Parquet column as text. Blanks around it are not part of it.
  void add(std::string_view cell);
  /// A cell of a row to evaluate on: only checks whether it can be read like the others.
  void check(std::string_view cell);
  /// A row of a list column: its values, one by one, then the end of the row.
  void add_item(std::string_view item);
  void end_list();

  std::string unread_type;  ///< reason why a Parquet column is not read; empty: it is
  bool fractions = false;   ///< a Parquet column of floats, of which whole numbers alone have keys
  double whole_below = 0;   ///< floats of a Parquet column: whole numbers from here on may have been rounded
  bool instants = false;    ///< a Parquet column of dates or times, as seconds since 1970
  int64_t rows = 0;
  int64_t empty = 0;                     ///< rows without a value, marks included
  int64_t padded = 0;                    ///< cells with blanks around them, also in rows to evaluate on
  std::map<std::string, int64_t> marks;  ///< texts that mean a missing value, and how many, also there
  int64_t numbers = 0, integers = 0;     ///< counts of values; a number like 4.0 is an integer, too
  int64_t negative = 0;
  int64_t leading_zeros = 0;       ///< integers with leading zeros
  int64_t times = 0;               ///< values that are a date or a time of day
  int64_t in_brackets = 0;         ///< values in brackets
  int64_t lists_in_brackets = 0;   ///< lists among these, with several values or quotes inside
  int64_t other_numbers = 0;       ///< values that may be numbers in a notation that is not read
  int64_t sure_other_numbers = 0;  ///< values among these that can be nothing else
  std::string other_number;        ///< the first of them
  std::string odd_value;           ///< the first value that is a number in no known notation
  std::string unit, with_unit;     ///< the text after the first number that is followed by text, and that value
  int64_t with_units = 0;          ///< values with the same unit
  int64_t points = 0;              ///< numbers written with a point
  int64_t group_points = 0;        ///< values among these whose point may be a thousands separator
  std::string group_point;         ///< the first of them
  int64_t large_plain = 0;         ///< numbers of 1000 or more without a point
  int64_t words = 0;               ///< words of all values together
  int64_t rising = 0;              ///< numbers larger than the one before by one
  double least = std::numeric_limits<double>::infinity(), most = -std::numeric_limits<double>::infinity();
  Moments plain;                   ///< moments of the numbers
  NotationFacts notation;          ///< notations of the numbers, also in rows to evaluate on
  std::string no_number;           ///< the first value that is none
  int64_t held_out_words = 0;      ///< values to evaluate on that are not numbers
  int64_t held_out_not_keys = 0;   ///< values to evaluate on that are not integers of at least 0
  std::string held_out_word;       ///< the first of them that is not a number
  int64_t held_out_fractions = 0;  ///< numbers to evaluate on that are not whole
  bool is_list = false;            ///< a list column of Parquet
  int64_t most_items = 0;          ///< maximum items of such a column
  int64_t integer_items = 0, items = 0;
  std::array<ListFacts, kListForms> lists;
  std::set<std::string> marks_in_lists;  ///< texts in brackets that mean a missing value

  int64_t values() const { return rows - empty; }
  /// Facts about numbers that need no notation.
  NumberFacts plain_numbers() const { return {least, most, numbers, integers, negative, plain}; }
  /// Different values; an estimate beyond 65,536.
  int64_t distinct() const { return distinct_.value(); }
  /// The share of this column's values that occur in lists of `list`, among those examined in both. `form`: of the
  /// lists; any for a column of lists.
  double share_in(const ColumnFacts& list, size_t form) const;

 private:
  void add_text(std::string_view text);
  void look_at_notation(std::string_view text);
  void look_for_lists(std::string_view text);
  void look_in_brackets(std::string_view text);
  bool read_in_brackets(size_t form, std::string_view text);
  void add_list_value(size_t form, std::string_view value);

  DistinctCount distinct_{1 << 16};
  BracketedList in_brackets_list_;
  std::array<std::unordered_set<uint64_t>, kListForms> list_values_;
  std::unordered_set<uint64_t> first_values_;
  double last_ = std::numeric_limits<double>::quiet_NaN();
  int64_t items_of_row_ = 0;
};

}  // namespace hctr
