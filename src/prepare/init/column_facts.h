// Facts about a column, collected in one pass over the rows.
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

/// Whether a non-empty text means a missing value, such as "?", "NA" or "null".
bool is_missing_mark(std::string_view text);

/// Possible separators of values inside a cell, the most likely first.
inline constexpr std::array<char, 8> kListSeparators = {'|', ';', ',', '/', '^', '~', '#', ' '};
/// Possible separators of values in brackets. 0: commas or blanks, as BracketedList detects.
inline constexpr std::array<char, 3> kSeparatorsInBrackets = {'\0', ';', '|'};
/// List forms have consecutive numbers: one for each separator of kListSeparators, then one for each separator of
/// kSeparatorsInBrackets.
inline constexpr size_t kFirstInBrackets = kListSeparators.size();
inline constexpr size_t kListForms = kFirstInBrackets + kSeparatorsInBrackets.size();

/// Facts about cells that are read as lists of one form.
struct ListFacts {
  int64_t cells = 0;         ///< cells with the separator
  int64_t most = 0;          ///< number of values in the longest cell
  int64_t looked_at = 0;     ///< number of values that were examined
  int64_t integers = 0;      ///< examined values that are integers
  int64_t distinct = 0;      ///< distinct examined values
  int64_t padded = 0;        ///< examined values with blanks around them
  bool empty_start = false;  ///< whether a cell begins or ends with the separator
  int64_t refused = 0;       ///< cells in brackets that are not lists of this form, in training and evaluation rows
  std::string refused_cell;  ///< the first cell that `refused` counts, and the problem
};

/// Collects facts about the cells of a column, one cell at a time.
class ColumnFacts {
 public:
  /// Adds a cell of a text, or a value of a Parquet column as text. Blanks around the cell are ignored.
  void add(std::string_view cell);
  /// Adds a cell of an evaluation row: only checks whether it can be read like training rows.
  void check(std::string_view cell);
  /// Adds a value of a list column; end_list() ends the row.
  void add_item(std::string_view item);
  void end_list();

  std::string unread_type;  ///< reason why a Parquet column cannot be read; empty if it can
  bool fractions = false;   ///< whether it is a Parquet column of floats (of which only whole numbers can be keys)
  double whole_below = 0;   ///< for Parquet floats: whole numbers from this size on may be rounded in the file
  bool instants = false;    ///< whether it is a Parquet column of dates or times, read as seconds since 1970
  int64_t rows = 0;
  int64_t empty = 0;                     ///< rows without a value, or with a mark for a missing value
  int64_t padded = 0;                    ///< cells with blanks around them, in training and evaluation rows
  std::map<std::string, int64_t> marks;  ///< counts of the marks for missing values, in training and evaluation rows
  /// numbers: values that are numbers; integers: numbers that are whole, including ones such as 4.0
  int64_t numbers = 0, integers = 0;
  int64_t negative = 0;
  int64_t leading_zeros = 0;       ///< integers with leading zeros
  int64_t times = 0;               ///< values that are dates or times of day
  int64_t in_brackets = 0;         ///< values in brackets
  int64_t lists_in_brackets = 0;   ///< values in brackets that are surely lists: several values, or quotes
  int64_t other_numbers = 0;       ///< values that may be numbers in an unsupported notation
  int64_t sure_other_numbers = 0;  ///< number of values in other_numbers that can only be numbers
  std::string other_number;        ///< the first value that sure_other_numbers counts
  std::string odd_value;           ///< the first value that is not a number in any known notation
  /// The unit and the text of the first value that is a number with a unit, such as "30 years".
  std::string unit, with_unit;
  int64_t with_units = 0;    ///< number of values with `unit`
  int64_t points = 0;        ///< numbers with a decimal point
  int64_t group_points = 0;  ///< numbers with a point that may be a thousands separator
  std::string group_point;   ///< the first value that group_points counts
  int64_t large_plain = 0;   ///< numbers of 1000 or more without a point
  int64_t words = 0;         ///< total number of words of all values
  int64_t rising = 0;        ///< numbers that exceed the preceding number by one
  double least = std::numeric_limits<double>::infinity(), most = -std::numeric_limits<double>::infinity();
  Moments plain;                   ///< moments of the plain numbers
  NotationFacts notation;          ///< notations of the numbers, in training and evaluation rows
  std::string no_number;           ///< the first value that is not a number
  int64_t held_out_words = 0;      ///< values of evaluation rows that are not numbers
  int64_t held_out_not_keys = 0;   ///< values of evaluation rows that are not integers of at least 0
  std::string held_out_word;       ///< the first value that held_out_words counts
  int64_t held_out_fractions = 0;  ///< numbers of evaluation rows that are not whole
  bool is_list = false;            ///< whether the column is a list column of Parquet
  int64_t most_items = 0;          ///< for a list column of Parquet: maximum number of items in a list
  int64_t integer_items = 0, items = 0;
  std::array<ListFacts, kListForms> lists;
  std::set<std::string> marks_in_lists;  ///< texts in brackets that mean a missing value

  int64_t values() const { return rows - empty; }
  /// Facts about numbers in plain notation.
  NumberFacts plain_numbers() const { return {least, most, numbers, integers, negative, plain}; }
  /// The number of distinct values; an estimate above 65,536.
  int64_t distinct() const { return distinct_.value(); }
  /// The fraction of this column's examined values that occur in the examined lists of `list`. `form`: the form of the
  /// lists; ignored if `list` is a list column of Parquet.
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
