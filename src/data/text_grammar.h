// Records of separated values in a text: where they end, and what their cells are. RFC 4180, "Common Format and MIME
// Type for Comma-Separated Values (CSV) Files", with any delimiter and, where that is wanted, without quoting.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hctr {

struct TextGrammar {
  char delimiter = ',';
  char quote = '"';  ///< 0: no quoting
};

/// Where the last whole record of `text` ends, behind its line end; 0 when there is none. `text` starts where a record
/// does. A quote opens a quoted value where it is a cell's first character; elsewhere it is a character like any other.
size_t end_of_last_record(std::string_view text, TextGrammar);

/// Splits one record after another. Cells are views of the text, or of memory that the splitter keeps until the next
/// record.
class RecordSplitter {
 public:
  explicit RecordSplitter(TextGrammar grammar) : grammar_(grammar) {}

  /// Splits the record that starts at `p`; returns where the next one starts. `end`: of the text.
  const char* split(const char* p, const char* end);
  std::span<const std::string_view> cells() const { return {cells_.data(), count_}; }
  /// What is wrong with the record's quotes; empty when nothing is.
  const std::string& problem() const { return problem_; }
  /// The record's last quote is never closed, so where it ends is not known.
  bool unclosed() const { return unclosed_; }

 private:
  void add(const char* begin, const char* end);
  const char* quoted(const char* p, const char* end);

  TextGrammar grammar_;
  std::vector<std::string_view> cells_ = std::vector<std::string_view>(64);
  size_t count_ = 0;
  std::string problem_;
  bool unclosed_ = false;
  std::deque<std::string> unescaped_;
};

/// Calls visit(value) for each value of a cell that holds several, leaving empty ones out; stops and returns false
/// where visit does.
template <class Visit>
bool for_each_value(std::string_view cell, char separator, Visit&& visit) {
  while (!cell.empty()) {
    const size_t end = std::min(cell.find(separator), cell.size());
    if (end > 0 && !visit(cell.substr(0, end))) return false;
    cell.remove_prefix(std::min(end + 1, cell.size()));
  }
  return true;
}

/// A record without cells: a blank line.
inline bool is_blank(std::span<const std::string_view> cells) { return cells.size() == 1 && cells[0].empty(); }

}  // namespace hctr
