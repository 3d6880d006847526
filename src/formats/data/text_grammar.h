// The grammar of delimiter-separated text: splits text into records and records into cells. Follows RFC 4180, "Common
// Format and MIME Type for Comma-Separated Values (CSV) Files", but allows any delimiter and optional quoting.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hctr {

struct TextGrammar {
  char delimiter = ',';
  char quote = '"';    ///< 0: no quoting
  bool trim = false;   ///< removes blanks (space, tab) around a cell and around its quotes
  std::string more{};  ///< remaining characters of a multi-character delimiter; requires quote = 0

  bool is_blank(char c) const { return (c == ' ' || c == '\t') && c != delimiter; }
};

/// The offset after the last complete record of `text`, including its line end; 0 if no record is complete. `text` must
/// start at a record. A quote opens a quoted value only as the first character of a cell; with `trim`, as the first
/// non-blank character.
size_t end_of_last_record(std::string_view text, const TextGrammar&);

/// Splits records into cells. Cells are views of the text, or of memory that stays valid until the next split().
class RecordSplitter {
 public:
  explicit RecordSplitter(TextGrammar grammar) : grammar_(std::move(grammar)) {}

  /// Splits the record that starts at `p` in a text that ends at `end`. Returns the start of the next record.
  const char* split(const char* p, const char* end);
  std::span<const std::string_view> cells() const { return {cells_.data(), count_}; }
  /// Describes invalid quoting in the record; empty if the quoting is valid.
  const std::string& problem() const { return problem_; }
  /// Whether the last quote of the record is not closed. The end of the record is then unknown.
  bool unclosed() const { return unclosed_; }

 private:
  template <bool kTrim>
  const char* split_at_character(const char* p, const char* end);
  const char* split_at_word(const char* p, const char* end);
  void add(const char* begin, const char* end);
  /// Adds a cell without quotes. kTrim removes blanks around the cell.
  template <bool kTrim>
  void add_plain(const char* begin, const char* end);
  const char* quoted(const char* p, const char* end);

  TextGrammar grammar_;
  std::vector<std::string_view> cells_ = std::vector<std::string_view>(64);
  size_t count_ = 0;
  std::string problem_;
  bool unclosed_ = false;
  std::deque<std::string> unescaped_;
};

/// Calls visit(value) for each non-empty value of a list cell. Stops and returns false if visit returns false.
template <class Visit>
bool for_each_value(std::string_view cell, char separator, Visit&& visit) {
  while (!cell.empty()) {
    const size_t end = std::min(cell.find(separator), cell.size());
    if (end > 0 && !visit(cell.substr(0, end))) return false;
    cell.remove_prefix(std::min(end + 1, cell.size()));
  }
  return true;
}

/// A line without the carriage returns before its line feed. Lines of Windows files have one carriage return; after a
/// second conversion in text mode they have two.
inline std::string_view without_returns(std::string_view line) {
  while (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

/// Whether the record is a blank line.
inline bool is_blank(std::span<const std::string_view> cells) { return cells.size() == 1 && cells[0].empty(); }

}  // namespace hctr
