// Reads text files (plain, gzip or Zstandard) and the standard input as blocks of whole records.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/data/text_grammar.h"
#include "formats/io/byte_stream.h"

namespace hctr {

/// Lines whose cells are separated by tabs and have no quotes.
inline const TextGrammar kPlainLines{.delimiter = '\t', .quote = '\0'};

/// A block of complete records, each ending with '\n'.
struct TextBlock {
  std::string text;
  std::string file;        ///< name of the file in messages
  int64_t first_line = 0;  ///< number of this block's first line in its file, from 1
  int64_t first_byte = 0;  ///< offset of this block in the decompressed file
  int64_t first_row = 0;   ///< number of non-blank records before this block, in all files
  int64_t bytes_done = 0;  ///< number of bytes read up to this block, compressed or not, in all files
};

/// Reads files one after another; "-" is the standard input. A last line without a newline is also a row. Blank lines
/// have line numbers but are not rows. A byte order mark is removed.
class TextSource {
 public:
  /// `header`: must equal the first record of each file; the header is not part of blocks and not a row. `grammar`:
  /// finds the ends of records, because quoted cells may contain line ends.
  explicit TextSource(std::vector<std::string> files, std::optional<std::string> header = {},
                      TextGrammar grammar = kPlainLines);

  /// Checks that every file can be opened. Errors: Error(io) with the first file that cannot.
  void expect_readable() const;
  /// Reads the next block. Returns false at the end. Errors: Error(io) for files that cannot be opened or read;
  /// Error(data) for a damaged file, a record of more than a megabyte, or a different header.
  bool next(TextBlock& block);
  /// The number of non-blank records in all blocks so far.
  int64_t rows() const { return row_; }
  /// The total size of all files, for progress; 0 if a size is unknown.
  int64_t bytes() const;

 private:
  bool open_next();
  void look_at_start(std::string& text);
  void remove_header(std::string& text);
  void fail_long() const;

  std::vector<std::string> files_;
  std::optional<std::string> header_;
  TextGrammar grammar_;
  size_t next_file_ = 0;
  std::unique_ptr<ByteStream> stream_;
  std::string partial_;  // the start of a record that is not complete yet
  int64_t line_ = 1, byte_ = 0, row_ = 0;
  int64_t bytes_before_ = 0;  // bytes of finished files
};

/// The first non-blank record of a file, without line end and byte order mark; empty for an empty file. Errors: those
/// of TextSource.
std::string first_record_of(const std::string& file, const TextGrammar&);

/// The number of non-blank records in `text`.
int64_t count_rows(std::string_view text, const TextGrammar& = kPlainLines);

/// Calls visit(line, line number) for each non-blank line. `line` has no line end.
template <class Visit>
void for_each_line(const TextBlock& block, Visit&& visit) {
  std::string_view text = block.text;
  for (int64_t number = block.first_line; !text.empty(); ++number) {
    const size_t newline = text.find('\n');
    const std::string_view line = without_returns(text.substr(0, newline));
    text.remove_prefix(newline == text.npos ? text.size() : newline + 1);
    if (!line.empty()) visit(line, number);
  }
}

}  // namespace hctr
