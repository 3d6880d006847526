#include "formats/io/byte_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/expect.h"

namespace hctr {
namespace {

// bytes to read ahead; hides the latency of disks and networks
constexpr int64_t kReadAhead = 16 << 20;

/// Asks the system to read ahead, once per kReadAhead bytes.
void fetch_ahead(int descriptor, int64_t position, size_t count) {
  if (position / kReadAhead != (position + static_cast<int64_t>(count)) / kReadAhead || position == 0)
    ::posix_fadvise(descriptor, position, 2 * kReadAhead, POSIX_FADV_WILLNEED);
}

[[noreturn]] void fail(const char* verb, const fs::path& path) {
  throw Error(Kind::io, cat("cannot ", verb, " data file '", path.string(), "': ", std::strerror(errno)));
}

}  // namespace

ByteFile::ByteFile(fs::path path) : path_(std::move(path)) {
  std::error_code error;
  if (const fs::file_status status = fs::status(path_, error);
      fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status))
    throw Error(Kind::io, cat("cannot open data file '", path_.string(),
                              "': it is a pipe or a device, which has no size and cannot be read twice"));
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) fail("open", path_);
  struct stat facts;
  const bool known = ::fstat(descriptor_, &facts) == 0;
  if (known && S_ISDIR(facts.st_mode)) errno = EISDIR;
  if (!known || S_ISDIR(facts.st_mode)) {
    const int reason = errno;
    ::close(std::exchange(descriptor_, -1));
    errno = reason;
    fail("open", path_);
  }
  size_ = facts.st_size;
  ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_SEQUENTIAL);
}

ByteFile::~ByteFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

ByteFile::ByteFile(ByteFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      position_(other.position_) {}

void ByteFile::seek(int64_t position) {
  if (::lseek(descriptor_, position, SEEK_SET) < 0) fail("read", path_);
  position_ = position;
}

size_t ByteFile::read(std::byte* to, size_t count) {
  fetch_ahead(descriptor_, position_, count);
  size_t done = 0;
  while (done < count) {
    const ssize_t got = ::read(descriptor_, to + done, count - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read", path_);
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  position_ += static_cast<int64_t>(done);
  return done;
}

void ByteFile::read_at(int64_t position, std::byte* to, size_t count) const {
  fetch_ahead(descriptor_, position, count);
  for (size_t done = 0; done < count;) {
    const ssize_t got = ::pread(descriptor_, to + done, count - done, position + static_cast<int64_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("read", path_);
    if (got == 0)
      throw Error(Kind::data,
                  cat("'", path_.string(), "': ends at byte ", position + static_cast<int64_t>(done), ", ",
                      size_ > position + static_cast<int64_t>(done)
                          ? cat("but had ", size_, " bytes when opened: the file was truncated while being read")
                          : cat("the size when opened, but had more bytes when its records were counted: the file "
                                "was truncated while being read")));
    done += static_cast<size_t>(got);
  }
}

}  // namespace hctr
