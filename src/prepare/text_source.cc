#include "prepare/text_source.h"

#include <algorithm>

#include "core/base/expect.h"
#include "core/base/foreign_content.h"

namespace hctr {
namespace {

constexpr size_t kReadBytes = 1 << 20;  // number of bytes read at a time, and maximum line length

/// Appends up to `count` bytes. Returns false at the end of the file.
bool append(ByteStream& stream, std::string& to, size_t count) {
  const size_t before = to.size();
  to.resize(before + count);
  const size_t got = stream.read(reinterpret_cast<std::byte*>(to.data()) + before, count);
  to.resize(before + got);
  return got > 0;
}

constexpr std::string_view kMark = "\xEF\xBB\xBF";

/// The position after the first non-blank record of `text` and its line end.
size_t end_of_first_record(std::string_view text, const TextGrammar& grammar) {
  RecordSplitter splitter(grammar);
  const char *p = text.data(), *const end = p + text.size();
  while (p < end) {
    p = splitter.split(p, end);
    if (!is_blank(splitter.cells())) break;
  }
  return static_cast<size_t>(p - text.data());
}

/// The record without preceding blank lines and without its line end.
std::string_view bare(std::string_view record) {
  record.remove_prefix(std::min(record.find_first_not_of("\r\n"), record.size()));
  if (record.ends_with('\n')) record.remove_suffix(1);
  return without_returns(record);
}

}  // namespace

TextSource::TextSource(std::vector<std::string> files, std::optional<std::string> header, TextGrammar grammar)
    : files_(std::move(files)), header_(std::move(header)), grammar_(std::move(grammar)) {}

void TextSource::expect_readable() const {
  for (const std::string& file : files_) hctr::expect_readable(file);
}

bool TextSource::open_next() {
  if (next_file_ > 0) bytes_before_ += stream_bytes(files_[next_file_ - 1]);
  stream_.reset();
  if (next_file_ == files_.size()) return false;
  stream_ = open_stream(files_[next_file_++]);
  line_ = 1;
  byte_ = 0;
  return true;
}

/// Removes a byte order mark. Errors: Error(data) if the file is not a text.
void TextSource::look_at_start(std::string& text) {
  if (const std::string why = why_no_rows(text); !why.empty())
    throw Error(Kind::data, cat("'", stream_name(files_[next_file_ - 1]), "': ", why));
  if (!text.starts_with(kMark)) return;
  byte_ = static_cast<int64_t>(kMark.size());
  text.erase(0, kMark.size());
}

void TextSource::remove_header(std::string& text) {
  const size_t end = end_of_first_record(text, grammar_);
  const std::string_view record = std::string_view(text).substr(0, end), found = bare(record);
  if (found != *header_)
    throw Error(Kind::data,
                cat("'", stream_name(files_[next_file_ - 1]), "' line 1: the columns are named '", found.substr(0, 200),
                    "', but '", header_->substr(0, 200), "' in the first file: all files need the same header"));
  byte_ += static_cast<int64_t>(end);
  line_ += std::count(record.begin(), record.end(), '\n');
  text.erase(0, end);
}

void TextSource::fail_long() const {
  throw Error(Kind::data, cat("'", stream_name(files_[next_file_ - 1]), "' line ", line_, ": longer than ", kReadBytes,
                              " bytes", grammar_.quote ? "; is a quote never closed?" : ""));
}

bool TextSource::next(TextBlock& block) {
  for (;;) {
    if (!stream_ && !open_next()) return false;
    block.text = std::move(partial_);
    partial_.clear();
    const bool more = append(*stream_, block.text, kReadBytes);
    block.file = stream_name(files_[next_file_ - 1]);
    block.bytes_done = bytes_before_ + stream_->consumed();
    if (byte_ == 0) look_at_start(block.text);
    if (more) {
      const size_t end = end_of_last_record(block.text, grammar_);  // 0 if the block contains no complete record
      partial_ = block.text.substr(end);
      block.text.resize(end);
      if (partial_.size() > kReadBytes) fail_long();
    } else {
      stream_.reset();
      if (!block.text.empty()) block.text += '\n';  // adds a newline that the last line lacks
    }
    if (block.text.empty()) continue;
    if (header_ && line_ == 1) remove_header(block.text);
    block.first_line = line_;
    block.first_byte = byte_;
    byte_ += static_cast<int64_t>(block.text.size());
    block.first_row = row_;
    line_ += std::count(block.text.begin(), block.text.end(), '\n');
    row_ += count_rows(block.text, grammar_);
    if (!block.text.empty()) return true;
  }
}

int64_t TextSource::bytes() const {
  int64_t sum = 0;
  for (const std::string& file : files_) {
    const int64_t bytes = stream_bytes(file);
    if (bytes == 0) return 0;
    sum += bytes;
  }
  return sum;
}

std::string first_record_of(const std::string& file, const TextGrammar& grammar) {
  TextBlock block;
  if (!TextSource({file}, {}, grammar).next(block)) return "";
  return std::string(bare(std::string_view(block.text).substr(0, end_of_first_record(block.text, grammar))));
}

int64_t count_rows(std::string_view text, const TextGrammar& grammar) {
  int64_t rows = 0;
  if (grammar.quote != 0 && text.find(grammar.quote) != text.npos) {
    RecordSplitter splitter(grammar);
    for (const char *p = text.data(), *const end = p + text.size(); p < end;) {
      p = splitter.split(p, end);
      rows += !is_blank(splitter.cells());
    }
    return rows;
  }
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    rows += !without_returns(text.substr(begin, end - begin)).empty();
    begin = end + 1;
  }
  return rows;
}

}  // namespace hctr
