// Lists that a program wrote as text: Python, JSON, NumPy, sets, tuples, arrays of a database.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hctr {

/// Whether the text begins with a bracket and ends with its closing one: "[3, 5]", "('a',)", "{}", "<3, 5>". A type
/// name may precede a round bracket: "array([1, 2])", "set()".
bool is_in_brackets(std::string_view text);

/// Takes lists apart, one after the other. Values are views of the cell, or of memory that is kept until the next one.
class BracketedList {
 public:
  /// Reads the values of a cell without brackets, quotes and blanks around them; empty ones are skipped. A cell without
  /// brackets is read like the contents of brackets. `separator`: the separator of values; a blank means any number of
  /// blanks and line ends; 0: commas, or blanks between numbers and values in quotes, as NumPy writes them. False if it
  /// is not such a list; problem() then states why.
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
