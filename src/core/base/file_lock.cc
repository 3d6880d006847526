#include "core/base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/base/expect.h"
#include "core/base/host_name.h"

namespace hctr {
namespace {

/// Creates a folder and its missing parents, and ignores errors. Returns the created folders, outermost first.
std::vector<fs::path> make_folders(const fs::path& folder) {
  std::vector<fs::path> made;
  std::error_code error;
  for (fs::path at = folder; !at.empty() && !fs::exists(at, error); at = at.parent_path()) made.push_back(at);
  std::reverse(made.begin(), made.end());
  if (!made.empty()) fs::create_directories(folder, error);
  return made;
}

/// Returns, in parentheses, the text that the holder of the lock has written into the lock file. Empty if the file is
/// empty.
std::string holder_in(int descriptor) {
  char text[256];
  const ssize_t got = ::pread(descriptor, text, sizeof text, 0);
  return got > 0 ? cat(" (", std::string(text, static_cast<size_t>(got)), ")") : "";
}

void note_holder(const fs::path& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  if (file < 0) return;
  const std::string holder = cat("process ", ::getpid(), " on ", host_name());
  (void)!::write(file, holder.data(), holder.size());
  ::close(file);
}

}  // namespace

fs::path FileLock::path_for(const fs::path& prefix) {
  const std::string start = prefix.filename().string();
  return prefix.parent_path() / (start.empty() ? std::string(".lock") : cat(".", start, ".lock"));
}

FileLock::FileLock(const fs::path& prefix, const std::string& what)
    : path_(path_for(prefix)), folders_(make_folders(path_.parent_path())) {
  // A try opens the lock file and then locks it. The try fails only if a process that ends removes the file between
  // these steps.
  constexpr int kMostTries = 100;
  for (int tries = 0; tries < kMostTries; ++tries) {
    // Try O_RDONLY first, because a file that is open for writing prevents a remount of the file system as read-only.
    // Then try O_RDWR, because NFS locks only files that are open for writing.
    for (const int access : {O_RDONLY, O_RDWR}) {
      if (descriptor_ >= 0) ::close(descriptor_);
      descriptor_ = ::open(path_.c_str(), access | O_CREAT | O_CLOEXEC, 0666);
      if (descriptor_ < 0) return;
      if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EBADF) break;
    }
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      const bool taken = errno == EWOULDBLOCK;
      const std::string holder = holder_in(descriptor_);
      ::close(std::exchange(descriptor_, -1));
      if (!taken) return;
      throw Error(Kind::io, cat("another process is writing to ", what, " '", prefix.string(), "' now", holder,
                                ": wait until that process ends, or name another path"));
    }
    if (has_name()) {
      note_holder(path_);
      return;
    }
    ::close(std::exchange(descriptor_, -1));
  }
}

bool FileLock::has_name() const {
  struct stat opened, named;
  return ::fstat(descriptor_, &opened) == 0 && ::stat(path_.c_str(), &named) == 0 && opened.st_dev == named.st_dev &&
         opened.st_ino == named.st_ino;
}

FileLock::FileLock(FileLock&& other) noexcept
    : path_(std::move(other.path_)),
      folders_(std::exchange(other.folders_, {})),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

FileLock::~FileLock() {
  std::error_code ignored;
  if (descriptor_ >= 0) {
    fs::remove(path_, ignored);  // Remove the file before the unlock, so that the next process creates a new file.
    ::close(descriptor_);
  }
  // remove() does not remove a folder that still has files
  for (auto folder = folders_.rbegin(); folder != folders_.rend(); ++folder) fs::remove(*folder, ignored);
}

}  // namespace hctr
