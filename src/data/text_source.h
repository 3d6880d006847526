// Text files, plain or gzip, and the standard input, as blocks of whole lines.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/files.h"

namespace hctr {

/// Whole lines, each ending in '\n'.
struct TextBlock {
  std::string text;
  std::string file;        ///< for messages
  int64_t first_line = 0;  ///< of this block in its file, counted from 1
  int64_t first_row = 0;   ///< lines with content before this block, over all files
};

/// Reads files one after another; "-" is the standard input. zlib tells gzip from plain text by its first bytes.
/// A last line without a newline counts; blank lines have a number and are no rows.
class TextSource {
 public:
  explicit TextSource(std::vector<std::string> files);
  ~TextSource();

  /// Fills `block`; false at the end. Errors: Error(io) for files that cannot be opened or read, Error(data) for a damaged gzip
  /// file or a line of more than a megabyte.
  bool next(TextBlock& block);

 private:
  struct Stream;
  bool open_next();

  std::vector<std::string> files_;
  size_t next_file_ = 0;
  std::unique_ptr<Stream> stream_;
  std::string rest_;  // the start of a line whose end is not read yet
  int64_t line_ = 1, row_ = 0;
};

/// Lines with content in `text`.
int64_t count_rows(std::string_view text);

/// Calls visit(line, line number) for each line with content, without its line end.
template <class Visit>
void for_each_line(const TextBlock& block, Visit&& visit) {
  std::string_view text = block.text;
  for (int64_t number = block.first_line; !text.empty(); ++number) {
    const size_t newline = text.find('\n');
    std::string_view line = text.substr(0, newline);
    text.remove_prefix(newline == text.npos ? text.size() : newline + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) visit(line, number);
  }
}

}  // namespace hctr
