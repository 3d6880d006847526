#include "formats/io/byte_stream.h"

#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/base/expect.h"
#include "core/base/foreign_content.h"
#include "formats/io/byte_file.h"

namespace hctr {
namespace {

enum class Packing { none, gzip, zstd };

bool is_standard_input(const fs::path& path) { return path == "-"; }

/// Whether bytes can be read only once. True for the standard input, a pipe and a device.
bool reads_once(const fs::path& path) {
  if (is_standard_input(path)) return true;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

Packing packing_of(const fs::path& path) {
  if (reads_once(path)) return Packing::gzip;  // zlib also reads plain data
  ByteFile file(path);
  std::array<std::byte, 10> start{};
  const size_t got = file.read(start.data(), start.size());
  const std::string_view text(reinterpret_cast<const char*>(start.data()), got);
  if (const std::string packing = foreign_packing(text); !packing.empty())
    throw Error(Kind::data, cat("'", path.string(), "' ", packing, " ", path.string()));
  const auto begins = [&](std::initializer_list<int> bytes) {
    return std::equal(bytes.begin(), bytes.end(), start.begin(),
                      [](int a, std::byte b) { return a == static_cast<int>(b); });
  };
  if (begins({0x1f, 0x8b})) return Packing::gzip;
  return begins({0x28, 0xb5, 0x2f, 0xfd}) ? Packing::zstd : Packing::none;
}

class PlainStream : public ByteStream {
 public:
  explicit PlainStream(const fs::path& path) : file_(path) {}
  size_t read(std::byte* to, size_t count) override { return file_.read(to, count); }
  int64_t consumed() const override { return file_.position(); }
  void skip_to(int64_t offset) override { file_.seek(offset); }

 private:
  ByteFile file_;
};

/// A compressed stream. It cannot seek, so skip_to() reads and discards bytes.
class PackedStream : public ByteStream {
 public:
  explicit PackedStream(const fs::path& path) : name_(stream_name(path)) {}
  size_t read(std::byte* to, size_t count) final {
    size_t done = 0;
    while (done < count) {
      const size_t got = unpack(to + done, count - done);
      if (got == 0) break;
      done += got;
    }
    position_ += static_cast<int64_t>(done);
    return done;
  }
  void skip_to(int64_t offset) final {
    std::vector<std::byte> dropped(64 << 10);
    while (position_ < offset)
      if (read(dropped.data(), std::min(dropped.size(), static_cast<size_t>(offset - position_))) == 0) break;
  }

 protected:
  [[noreturn]] void fail_damaged(const char* reason) const {
    throw Error(Kind::data,
                cat("'", name_, "' is damaged or truncated after byte ", position_, " of its content: ", reason));
  }
  std::string name_;

 private:
  virtual size_t unpack(std::byte* to, size_t count) = 0;  // returns 0 only at the end
  int64_t position_ = 0;
};

class GzipStream : public PackedStream {
 public:
  explicit GzipStream(const fs::path& path)
      : PackedStream(path),
        gz_(is_standard_input(path) ? ::gzdopen(::dup(STDIN_FILENO), "rb") : ::gzopen(path.c_str(), "rb")) {
    if (!gz_) throw Error(Kind::io, cat("cannot open data file '", name_, "': ", std::strerror(errno)));
    ::gzbuffer(gz_, 1 << 18);
  }
  ~GzipStream() override { ::gzclose(gz_); }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;
  int64_t consumed() const override { return std::max<int64_t>(::gzoffset(gz_), 0); }  // gzoffset() is -1 for a pipe

 private:
  size_t unpack(std::byte* to, size_t count) override {
    const int got = ::gzread(gz_, to, static_cast<unsigned>(std::min<size_t>(count, 1 << 30)));
    int code = Z_OK;
    const char* reason = ::gzerror(gz_, &code);
    if (code == Z_ERRNO) throw Error(Kind::io, cat("cannot read data file '", name_, "': ", std::strerror(errno)));
    if (got < 0 || code == Z_BUF_ERROR) fail_damaged(reason);
    return static_cast<size_t>(got);
  }
  gzFile gz_;
};

class ZstdStream : public PackedStream {
 public:
  explicit ZstdStream(const fs::path& path)
      : PackedStream(path), file_(path), packed_(ZSTD_DStreamInSize()), state_(ZSTD_createDStream()) {
    if (!state_) throw Error(Kind::io, cat("no memory to unpack '", name_, "'"));
  }
  ~ZstdStream() override { ZSTD_freeDStream(state_); }
  ZstdStream(const ZstdStream&) = delete;
  ZstdStream& operator=(const ZstdStream&) = delete;
  int64_t consumed() const override { return file_.position(); }

 private:
  size_t unpack(std::byte* to, size_t count) override {
    ZSTD_outBuffer out{to, count, 0};
    while (out.pos == 0) {
      if (in_.pos == in_.size) in_ = {packed_.data(), file_.read(packed_.data(), packed_.size()), 0};
      const size_t had = in_.pos;
      const size_t left = ZSTD_decompressStream(state_, &out, &in_);
      if (ZSTD_isError(left)) fail_damaged(ZSTD_getErrorName(left));
      if (in_.size == 0 && out.pos == 0) {
        if (!between_frames_) fail_damaged("the file ends inside a frame");
        return 0;
      }
      if (in_.pos > had || out.pos > 0) between_frames_ = left == 0;
    }
    return out.pos;
  }
  ByteFile file_;
  std::vector<std::byte> packed_;
  ZSTD_inBuffer in_{nullptr, 0, 0};
  ZSTD_DStream* state_;
  bool between_frames_ = true;
};

}  // namespace

std::unique_ptr<ByteStream> open_stream(const fs::path& path) {
  switch (packing_of(path)) {
    case Packing::gzip:
      return std::make_unique<GzipStream>(path);
    case Packing::zstd:
      return std::make_unique<ZstdStream>(path);
    default:
      return std::make_unique<PlainStream>(path);
  }
}

bool is_packed(const fs::path& path) { return packing_of(path) != Packing::none; }

void expect_readable(const fs::path& path) {
  if (!reads_once(path)) ByteFile file(path);
}

std::string stream_name(const fs::path& path) { return is_standard_input(path) ? "standard input" : path.string(); }

int64_t stream_bytes(const fs::path& path) {
  std::error_code error;
  if (is_standard_input(path) || !fs::is_regular_file(path, error)) return 0;
  const auto size = fs::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(size);
}

}  // namespace hctr
