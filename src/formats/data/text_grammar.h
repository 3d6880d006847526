// The grammar of separated values: where records end, and how they split into cells. RFC 4180, "Common Format and MIME
// Type for Comma-Separated Values (CSV) Files", with any delimiter and optional quoting.
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
  bool trim = false;   ///< blanks (space, tab) around a cell, and around its quotes, are not part of it
  std::string more{};  ///< the characters of a delimiter after its first; not empty only without quoting

  bool is_blank(char c) const { return (c == ' ' || c == '\t') && c != delimiter; }
};

/// Returns the end of the last whole record of `text`, after its line end; 0 when there is none. `text` starts at a
/// record. A quote opens a quoted value only as the first character of a cell; with `trim`, as the first but blanks.
size_t end_of_last_record(std::string_view text, const TextGrammar&);

/// Splits one record after another. Cells are views of the text, or of memory that the splitter keeps until the next
/// record.
class RecordSplitter {
 public:
  explicit RecordSplitter(TextGrammar grammar) : grammar_(std::move(grammar)) {}

  /// Splits the record that starts at `p`, in a text that ends at `end`. Returns the start of the next record.
  const char* split(const char* p, const char* end);
  std::span<const std::string_view> cells() const { return {cells_.data(), count_}; }
  /// The problem with the record's quotes; empty when there is none.
  const std::string& problem() const { return problem_; }
  /// Whether the last quote of the record is never closed. The end of the record is then unknown.
  bool unclosed() const { return unclosed_; }

 private:
  template <bool kTrim>
  const char* split_at_character(const char* p, const char* end);
  const char* split_at_word(const char* p, const char* end);
  void add(const char* begin, const char* end);
  /// The same for a cell without quotes.
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

/// Calls visit(value) for each non-empty value of a list cell. Stops and returns false when visit returns false.
template <class Visit>
bool for_each_value(std::string_view cell, char separator, Visit&& visit) {
  while (!cell.empty()) {
    const size_t end = std::min(cell.find(separator), cell.size());
    if (end > 0 && !visit(cell.substr(0, end))) return false;
    cell.remove_prefix(std::min(end + 1, cell.size()));
  }
  return true;
}

/// A line without the carriage returns before its line feed: one in a file from Windows, two if such a file was written
/// as text again.
inline std::string_view without_returns(std::string_view line) {
  while (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

/// Whether the record is a blank line.
inline bool is_blank(std::span<const std::string_view> cells) { return cells.size() == 1 && cells[0].empty(); }

}  // namespace hctr
