#include "data/text_source.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace hctr {
namespace {
constexpr size_t kBlock = 1 << 20;  // bytes of text read at a time; no line may be longer
}

struct TextSource::Stream {
  explicit Stream(const std::string& file) : name(file == "-" ? "standard input" : file) {
    if (file != "-") open_to_read(file, "input file");  // for its message
    gz = file == "-" ? ::gzdopen(::dup(STDIN_FILENO), "rb") : ::gzopen(file.c_str(), "rb");
    if (!gz) throw Error(Kind::io, cat("cannot open input file '", name, "': ", std::strerror(errno)));
    ::gzbuffer(gz, kBlock);
  }
  ~Stream() { ::gzclose(gz); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Appends up to `count` bytes; false at the end of the file.
  bool read(std::string& to, size_t count) {
    const size_t before = to.size();
    to.resize(before + count);
    const int got = ::gzread(gz, to.data() + before, static_cast<unsigned>(count));
    to.resize(before + static_cast<size_t>(std::max(got, 0)));
    int code = Z_OK;
    const char* reason = ::gzerror(gz, &code);
    if (code == Z_ERRNO) throw Error(Kind::io, cat("cannot read '", name, "': ", std::strerror(errno)));
    if (got < 0 || code == Z_BUF_ERROR)
      throw Error(Kind::data, cat("'", name, "' is damaged or cut off: ", reason));
    return got > 0;
  }

  std::string name;
  gzFile gz;
};

TextSource::TextSource(std::vector<std::string> files) : files_(std::move(files)) {}
TextSource::~TextSource() = default;

bool TextSource::open_next() {
  stream_.reset();
  if (next_file_ == files_.size()) return false;
  stream_ = std::make_unique<Stream>(files_[next_file_++]);
  line_ = 1;
  return true;
}

bool TextSource::next(TextBlock& block) {
  for (;;) {
    if (!stream_ && !open_next()) return false;
    block.text = std::move(rest_);
    rest_.clear();
    const bool more = stream_->read(block.text, kBlock);
    block.file = stream_->name;
    block.first_line = line_;
    block.first_row = row_;
    if (more) {
      const size_t end = block.text.rfind('\n') + 1;  // 0 when there is none
      rest_ = block.text.substr(end);
      block.text.resize(end);
      if (rest_.size() > kBlock) throw Error(Kind::data, cat("'", stream_->name, "' line ", line_, ": longer than ", kBlock, " bytes"));
    } else {
      stream_.reset();
      if (!block.text.empty()) block.text += '\n';  // the last line, without a newline of its own
    }
    if (block.text.empty()) continue;
    line_ += std::count(block.text.begin(), block.text.end(), '\n');
    row_ += count_rows(block.text);
    return true;
  }
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
