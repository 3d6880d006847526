#include "data/io/input_stream.h"

#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/files.h"

namespace hctr {
namespace {

constexpr size_t kPacked = 1 << 18;  // bytes of the file itself read at a time

/// Plain and gzip: zlib passes on what is not packed.
class GzipStream : public InputStream {
 public:
  explicit GzipStream(const std::string& file) : name_(input_name(file)) {
    gz_ = file == "-" ? ::gzdopen(::dup(STDIN_FILENO), "rb") : ::gzopen(file.c_str(), "rb");
    if (!gz_) throw Error(Kind::io, cat("cannot open input file '", name_, "': ", std::strerror(errno)));
    ::gzbuffer(gz_, kPacked);
  }
  ~GzipStream() override { ::gzclose(gz_); }

  size_t read(char* to, size_t count) override {
    const int got = ::gzread(gz_, to, static_cast<unsigned>(count));
    int code = Z_OK;
    const char* reason = ::gzerror(gz_, &code);
    if (code == Z_ERRNO) throw Error(Kind::io, cat("cannot read '", name_, "': ", std::strerror(errno)));
    if (got < 0 || code == Z_BUF_ERROR) throw Error(Kind::data, cat("'", name_, "' is damaged or cut off: ", reason));
    return static_cast<size_t>(got);
  }
  int64_t position() const override { return std::max<int64_t>(::gzoffset(gz_), 0); }

 private:
  std::string name_;
  gzFile gz_;
};

class ZstdStream : public InputStream {
 public:
  explicit ZstdStream(const std::string& file)
      : name_(file), file_(open_to_read(file, "input file")), packed_(kPacked) {
    if (!stream_) throw Error(Kind::io, cat("no memory to unpack '", name_, "'"));
  }

  size_t read(char* to, size_t count) override {
    ZSTD_outBuffer out{to, count, 0};
    while (out.pos < count) {
      if (in_.pos == in_.size && !refill()) break;
      left_ = ::ZSTD_decompressStream(stream_.get(), &out, &in_);
      if (::ZSTD_isError(left_)) throw Error(Kind::data, cat("'", name_, "' is damaged: ", ::ZSTD_getErrorName(left_)));
    }
    return out.pos;
  }
  int64_t position() const override { return position_; }

 private:
  bool refill() {
    const size_t got = std::fread(packed_.data(), 1, packed_.size(), file_.get());
    if (std::ferror(file_.get())) throw Error(Kind::io, cat("cannot read '", name_, "': ", std::strerror(errno)));
    if (got == 0 && left_ != 0)
      throw Error(Kind::data, cat("'", name_, "' is damaged or cut off: its last frame has no end"));
    position_ += static_cast<int64_t>(got);
    in_ = {packed_.data(), got, 0};
    return got > 0;
  }

  struct Free {
    void operator()(ZSTD_DStream* stream) const { ::ZSTD_freeDStream(stream); }
  };
  std::string name_;
  File file_;
  std::vector<char> packed_;
  std::unique_ptr<ZSTD_DStream, Free> stream_{::ZSTD_createDStream()};
  ZSTD_inBuffer in_{nullptr, 0, 0};
  size_t left_ = 1;  // 0 behind the end of a frame
  int64_t position_ = 0;
};

bool starts_as_zstd(const std::string& file) {
  const File opened = open_to_read(file, "input file");
  unsigned char start[4] = {};
  return std::fread(start, 1, sizeof start, opened.get()) == sizeof start &&
         std::memcmp(start, "\x28\xb5\x2f\xfd", 4) == 0;
}

}  // namespace

std::unique_ptr<InputStream> open_input(const std::string& file) {
  if (file != "-" && fs::is_regular_file(file) && starts_as_zstd(file)) return std::make_unique<ZstdStream>(file);
  if (file != "-") open_to_read(file, "input file");  // for its message
  return std::make_unique<GzipStream>(file);
}

std::string input_name(const std::string& file) { return file == "-" ? "standard input" : file; }

int64_t input_bytes(const std::string& file) {
  std::error_code error;
  if (file == "-" || !fs::is_regular_file(file, error)) return 0;
  const auto size = fs::file_size(file, error);
  return error ? 0 : static_cast<int64_t>(size);
}

}  // namespace hctr
