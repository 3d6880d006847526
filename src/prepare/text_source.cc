#include "prepare/text_source.h"

#include <algorithm>

#include "base/error.h"

namespace hctr {
namespace {

constexpr size_t kBlock = 1 << 20;  // bytes read at a time, and the longest allowed line

/// Appends up to `count` bytes; returns false at the end of the file.
bool append(ByteStream& stream, std::string& to, size_t count) {
  const size_t before = to.size();
  to.resize(before + count);
  const size_t got = stream.read(reinterpret_cast<std::byte*>(to.data()) + before, count);
  to.resize(before + got);
  return got > 0;
}

std::string_view bare(std::string_view line) {
  if (line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);  // a byte order mark
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

TextSource::TextSource(std::vector<std::string> files, std::optional<std::string> header)
    : files_(std::move(files)), header_(std::move(header)) {}

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

void TextSource::remove_header(std::string& text) {
  const std::string_view found = bare(std::string_view(text).substr(0, text.find('\n')));
  if (found != *header_)
    throw Error(Kind::data,
                cat("'", stream_name(files_[next_file_ - 1]), "' line 1: the columns are named '", found.substr(0, 200),
                    "', but '", header_->substr(0, 200), "' was expected: all files need the same header"));
  byte_ = static_cast<int64_t>(text.find('\n') + 1);
  text.erase(0, static_cast<size_t>(byte_));
  line_ = 2;
}

bool TextSource::next(TextBlock& block) {
  for (;;) {
    if (!stream_ && !open_next()) return false;
    block.text = std::move(partial_line_);
    partial_line_.clear();
    const bool more = append(*stream_, block.text, kBlock);
    block.file = stream_name(files_[next_file_ - 1]);
    block.bytes_done = bytes_before_ + stream_->consumed();
    if (more) {
      const size_t end = block.text.rfind('\n') + 1;  // 0 when there is none
      partial_line_ = block.text.substr(end);
      block.text.resize(end);
      if (partial_line_.size() > kBlock)
        throw Error(Kind::data, cat("'", block.file, "' line ", line_, ": longer than ", kBlock, " bytes"));
    } else {
      stream_.reset();
      if (!block.text.empty()) block.text += '\n';  // the last line may have no newline
    }
    if (block.text.empty()) continue;
    if (header_ && line_ == 1) remove_header(block.text);
    block.first_line = line_;
    block.first_byte = byte_;
    byte_ += static_cast<int64_t>(block.text.size());
    block.first_row = row_;
    line_ += std::count(block.text.begin(), block.text.end(), '\n');
    row_ += count_rows(block.text);
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

std::string first_line_of(const std::string& file) {
  TextBlock block;
  if (!TextSource({file}).next(block)) return "";
  return std::string(bare(std::string_view(block.text).substr(0, block.text.find('\n'))));
}

int64_t count_rows(std::string_view text) {
  int64_t rows = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    rows += end > begin && !(end == begin + 1 && text[begin] == '\r');
    begin = end + 1;
  }
  return rows;
}

}  // namespace hctr
