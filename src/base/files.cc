#include "base/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace hctr {
namespace {

/// A large file is flushed to disk every so many bytes while it is written, so that commit() is quick.
constexpr long kFlushBytes = 32 << 20;

[[noreturn]] void fail(std::string_view verb, std::string_view what, const fs::path& path) {
  throw Error(Kind::io, cat("cannot ", verb, " ", what, what.empty() ? "" : " ", "'", path.string(),
                            "': ", std::strerror(errno)));
}

}  // namespace

File open_to_read(const fs::path& path, std::string_view what) {
  if (std::error_code ignored; fs::is_directory(path, ignored)) {
    errno = EISDIR;
    fail("open", what, path);
  }
  File file(std::fopen(path.c_str(), "rb"));
  if (!file) fail("open", what, path);
  return file;
}

std::string read_text(const fs::path& path, std::string_view what) {
  const File file = open_to_read(path, what);
  std::string text;
  char block[1 << 16];
  while (const size_t count = std::fread(block, 1, sizeof block, file.get())) text.append(block, count);
  if (std::ferror(file.get())) fail("read", what, path);
  return text;
}

void create_parent_folder(const fs::path& path) {
  if (!path.has_parent_path()) return;
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) throw Error(Kind::io, cat("cannot create folder '", path.parent_path().string(), "': ", error.message()));
}

AtomicFile::AtomicFile(fs::path path) : path_(std::move(path)) {
  create_parent_folder(path_);
  temporary_ = path_;
  temporary_ += cat(".", ::getpid(), ".part");
  file_.reset(std::fopen(temporary_.c_str(), "wb"));
  if (!file_) fail("create", "", temporary_);
}

AtomicFile::~AtomicFile() {
  if (!file_) return;
  file_.reset();
  std::error_code ignored;  // nothing more can be done, and a destructor does not throw
  fs::remove(temporary_, ignored);
}

void AtomicFile::write(const void* bytes, size_t count) {
  const long begin = std::ftell(file_.get()), end = begin + static_cast<long>(count);
  if (count != 0 && std::fwrite(bytes, 1, count, file_.get()) != count) fail("write", "", path_);
  const long flushed = begin / kFlushBytes * kFlushBytes;
  if (end / kFlushBytes * kFlushBytes == flushed) return;
  ::sync_file_range(::fileno(file_.get()), flushed, end - flushed,
                    SYNC_FILE_RANGE_WRITE);  // does not wait; commit() reports errors
}

void AtomicFile::write_at(long offset, const void* bytes, size_t count) {
  if (std::fseek(file_.get(), offset, SEEK_SET) != 0) fail("write", "", path_);
  write(bytes, count);
  if (std::fseek(file_.get(), 0, SEEK_END) != 0) fail("write", "", path_);
}

void AtomicFile::commit() {
  if (std::fflush(file_.get()) != 0 || ::fsync(::fileno(file_.get())) != 0) fail("write", "", path_);
  if (std::fclose(file_.release()) != 0) fail("write", "", path_);
  std::error_code error;
  fs::rename(temporary_, path_, error);
  if (error) {
    std::error_code ignored;
    fs::remove(temporary_, ignored);
    throw Error(Kind::io,
                cat("cannot rename '", temporary_.string(), "' to '", path_.string(), "': ", error.message()));
  }
}

void write_text(const fs::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace hctr
