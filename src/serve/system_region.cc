#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "core/base/expect.h"
#include "serve/serve_status.h"
#include "serve/shared_region.h"

namespace hctr::serve {
namespace {

/// Copies by pread() and pwrite(). If the memory is gone, these calls fail, but access through a mapping would kill
/// this process.
class SystemRegion : public SharedRegion {
 public:
  SystemRegion(std::string key, int64_t offset, int64_t bytes)
      : key_(std::move(key)), offset_(offset), bytes_(bytes), file_(::shm_open(key_.c_str(), O_RDWR | O_CLOEXEC, 0)) {
    if (file_ < 0)
      throw Refusal::invalid("shared memory '", key_, "' cannot be opened: ", std::generic_category().message(errno));
  }
  ~SystemRegion() override { ::close(file_); }
  SystemRegion(const SystemRegion&) = delete;
  SystemRegion& operator=(const SystemRegion&) = delete;

  Kind kind() const override { return Kind::system; }
  int64_t bytes() const override { return bytes_; }
  /// The current size of the whole shared memory.
  int64_t size_now() const {
    struct stat status {};
    return ::fstat(file_, &status) == 0 ? int64_t{status.st_size} : 0;
  }
  Json status() const override {
    Json row{Json::Object{}};
    row.set("key", key_).set("offset", offset_).set("byte_size", bytes_);
    return row;
  }
  bool read(int64_t first, char* to, size_t bytes) const override {
    return copy(bytes, [&](size_t done) { return ::pread(file_, to + done, bytes - done, place(first, done)); });
  }
  bool write(int64_t first, const char* from, size_t bytes) const override {
    return copy(bytes, [&](size_t done) { return ::pwrite(file_, from + done, bytes - done, place(first, done)); });
  }

 private:
  off_t place(int64_t first, size_t done) const {
    return static_cast<off_t>(offset_ + first) + static_cast<off_t>(done);
  }
  template <class Part>
  static bool copy(size_t bytes, const Part& part) {
    for (size_t done = 0; done < bytes;) {
      const ssize_t count = part(done);
      if (count <= 0) return false;
      done += static_cast<size_t>(count);
    }
    return true;
  }

  std::string key_;
  int64_t offset_, bytes_;
  int file_;
};

}  // namespace

std::shared_ptr<SharedRegion> open_system_region(const std::string& name, const std::string& key, int64_t offset,
                                                 int64_t bytes) {
  if (key.size() < 2 || key.size() > 250 || key.find('/', 1) != key.npos || key.find('\0') != key.npos)
    throw Refusal::invalid("'", key, "' is not a name of shared memory: expected '/' followed by a name");
  if (offset < 0 || bytes <= 0 || offset > (int64_t{1} << 48) || bytes > (int64_t{1} << 48))
    throw Refusal::invalid("region '", name, "': ", bytes, " bytes from byte ", offset,
                           " on: expected a size above 0 and below 2^48");
  auto region = std::make_shared<SystemRegion>(key, offset, bytes);
  if (const int64_t now = region->size_now(); now < offset + bytes)
    throw Refusal::invalid("region '", name, "': shared memory '", key, "' has ", now, " bytes, but the region needs ",
                           bytes, " bytes from byte ", offset, " on");
  return region;
}

}  // namespace hctr::serve
