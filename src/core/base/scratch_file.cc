#include "core/base/scratch_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/base/expect.h"

namespace hctr {
namespace {

constexpr int64_t kBytesOfBlock = 512;  // ru_inblock counts blocks of this size

int open_without_name(const fs::path& folder) {
  const int unnamed = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (unnamed >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT)) return unnamed;
  // The file system has no O_TMPFILE: create a named file and unlink it.
  std::string name = (folder / "huge_ctr_rows.XXXXXX").string();
  const int named = ::mkostemp(name.data(), O_CLOEXEC);
  if (named >= 0) ::unlink(name.c_str());
  return named;
}

}  // namespace

ScratchFile::ScratchFile(fs::path folder) : folder_(std::move(folder)) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (!error) descriptor_ = open_without_name(folder_);
  if (error || descriptor_ < 0)
    throw Error(Kind::io, cat("cannot create a file in '", folder_.string(),
                              "': ", error ? error.message() : std::string(std::strerror(errno))));
}

ScratchFile::~ScratchFile() { ::close(descriptor_); }

fs::path ScratchFile::path() const { return fs::path("/proc/self/fd") / std::to_string(descriptor_); }

void ScratchFile::write(int64_t first, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(descriptor_, bytes.data(), bytes.size(), first);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0)
      throw Error(Kind::io, cat("cannot write ", bytes.size(), " bytes at byte ", first, " of a file in '",
                                folder_.string(), "': ", std::strerror(written < 0 ? errno : ENOSPC)));
    bytes = bytes.subspan(static_cast<size_t>(written));
    first += written;
  }
}

void ScratchFile::read(int64_t first, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got = ::pread(descriptor_, bytes.data(), bytes.size(), first);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      throw Error(Kind::io, cat("cannot read ", bytes.size(), " bytes at byte ", first, " of a file in '",
                                folder_.string(), "': ", got < 0 ? std::strerror(errno) : "the file is too short"));
    bytes = bytes.subspan(static_cast<size_t>(got));
    first += got;
  }
}

void ScratchFile::read_ahead(int64_t first, int64_t bytes) const noexcept {
  // Only a hint. If it fails, read() reads from disk or reports the error.
  ::posix_fadvise(descriptor_, first, bytes, POSIX_FADV_WILLNEED);
}

void ScratchFile::cut(int64_t bytes) noexcept {
  // Never extends the file, because a hole would hide missing disk space.
  if (::lseek(descriptor_, 0, SEEK_END) > bytes && ::ftruncate(descriptor_, bytes) != 0) return;
}

int64_t ScratchFile::bytes_from_disk() noexcept {
  ::rusage of_thread{};
  return ::getrusage(RUSAGE_THREAD, &of_thread) == 0 ? of_thread.ru_inblock * kBytesOfBlock : 0;
}

std::byte* ScratchFile::map(size_t bytes) {
  // Allocate the disk blocks now, because a write to a mapped page on a full disk would kill the process.
  int error = ::posix_fallocate(descriptor_, 0, static_cast<::off_t>(bytes));
  void* const mapped =
      error == 0 ? ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0) : MAP_FAILED;
  if (error == 0 && mapped == MAP_FAILED) error = errno;
  if (error != 0)
    throw Error(Kind::io,
                cat("cannot map ", bytes, " bytes of a file in '", folder_.string(), "': ", std::strerror(error)));
  ::madvise(mapped, bytes, MADV_RANDOM);  // Only a hint. If it fails, the system reads ahead more than needed.
  return static_cast<std::byte*>(mapped);
}

ScratchMemory::ScratchMemory(fs::path folder, size_t bytes)
    : file_(std::move(folder)), bytes_(bytes), data_(file_.map(bytes)) {}

ScratchMemory::~ScratchMemory() { ::munmap(data_, bytes_); }

}  // namespace hctr
