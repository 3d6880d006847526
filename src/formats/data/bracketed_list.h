// Parses lists that other programs wrote as text: Python and JSON lists, NumPy arrays, sets, tuples, database arrays.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hctr {

/// Whether the text starts with a bracket and ends with the matching one: "[3, 5]", "('a',)", "{}", "<3, 5>". A type
/// name may precede a round bracket: "array([1, 2])", "set()".
bool is_in_brackets(std::string_view text);

/// Splits lists into values, one list at a time. Values are views of the cell, or of memory that stays valid until the
/// next read().
class BracketedList {
 public:
  /// Splits a cell into values without brackets, quotes and surrounding blanks. Skips empty values. Brackets around the
  /// cell are optional. `separator`: the character between values. A blank stands for any number of blanks and line
  /// ends. 0: values are separated by commas or, as NumPy writes numbers and quoted values, by blanks. Returns false if
  /// the cell is not a list; problem() then gives the reason.
  bool read(std::string_view cell, char separator);
  std::span<const std::string_view> values() const { return values_; }
  const char* problem() const { return problem_; }

 private:
  bool read_values(std::string_view text, char separator);
  bool read_quoted(std::string_view& text);
  bool add_plain(std::string_view value);
  void add(std::string_view value) {
    if (!value.empty()) values_.push_back(value);
  }

  std::vector<std::string_view> values_;
  std::deque<std::string> unescaped_;
  const char* problem_ = "";
  bool in_braces_ = false;
};

}  // namespace hctr
