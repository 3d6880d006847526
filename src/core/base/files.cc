#include "core/base/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "core/base/expect.h"

namespace hctr {
namespace {

/// Each time a file grows by this size, AtomicFile::write() starts to write it back to disk, so that commit() has
/// little left to flush.
constexpr long kFlushBytes = 32 << 20;

[[noreturn]] void fail(std::string_view verb, std::string_view what, const fs::path& path) {
  throw Error(Kind::io, cat("cannot ", verb, " ", what, what.empty() ? "" : " ", "'", path.string(),
                            "': ", std::strerror(errno)));
}

/// Makes renames in a folder durable. Does nothing if the folder cannot be opened or flushed.
void flush_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace

File open_to_read(const fs::path& path, std::string_view what) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status)) {
    errno = EISDIR;
    fail("open", what, path);
  }
  // Refuse pipes and devices, because opening a named pipe blocks until a writer opens the pipe, and reading a device
  // may never end. Pipes passed by a shell are accepted, because they already have a writer.
  const bool passed_by_shell = path == "/dev/stdin" || path.string().starts_with("/dev/fd/");
  if (fs::exists(status) && !fs::is_regular_file(status) && !passed_by_shell)
    throw Error(Kind::io, cat("cannot open ", what, what.empty() ? "" : " ", "'", path.string(),
                              "': it is a pipe or a device; expected a regular file"));
  File file(std::fopen(path.c_str(), "rb"));
  if (!file) fail("open", what, path);
  return file;
}

int64_t size_of_file(const fs::path& path, std::string_view what) {
  const File file = open_to_read(path, what);
  if (::fseeko(file.get(), 0, SEEK_END) != 0) fail("read", what, path);
  return ::ftello(file.get());
}

std::string read_text(const fs::path& path, std::string_view what, int64_t most) {
  const File file = open_to_read(path, what);
  // A pipe passed by a shell has no size.
  const int64_t expected = ::fseeko(file.get(), 0, SEEK_END) == 0 ? ::ftello(file.get()) : 0;
  if (expected > 0) ::rewind(file.get());
  std::clearerr(file.get());
  std::string text;
  char block[1 << 16];
  size_t count = 0;
  while (expected <= most && static_cast<int64_t>(text.size()) <= most &&
         (count = std::fread(block, 1, sizeof block, file.get())) > 0)
    text.append(block, count);
  if (const int64_t size = std::max(expected, static_cast<int64_t>(text.size())); size > most)
    throw Error(Kind::io, cat("cannot read ", what, what.empty() ? "" : " ", "'", path.string(), "': it has ", size,
                              expected > most ? "" : " or more", " bytes, but at most ", most, " are read"));
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

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, {})), file_(std::move(other.file_)) {}

AtomicFile::~AtomicFile() {
  if (temporary_.empty()) return;
  file_.reset();
  // Ignores the error: a destructor must not throw, and the file cannot be removed in another way.
  std::error_code ignored;
  fs::remove(temporary_, ignored);
}

void AtomicFile::write(const void* bytes, size_t count) {
  const long begin = std::ftell(file_.get()), end = begin + static_cast<long>(count);
  if (count != 0 && std::fwrite(bytes, 1, count, file_.get()) != count) fail("write", "", path_);
  const long flushed = begin / kFlushBytes * kFlushBytes;
  if (end / kFlushBytes * kFlushBytes == flushed) return;
  ::sync_file_range(::fileno(file_.get()), flushed, end - flushed,
                    SYNC_FILE_RANGE_WRITE);  // asynchronous, so write errors appear later, in finish()
}

void AtomicFile::write_at(long offset, const void* bytes, size_t count) {
  if (std::fseek(file_.get(), offset, SEEK_SET) != 0) fail("write", "", path_);
  write(bytes, count);
  if (std::fseek(file_.get(), 0, SEEK_END) != 0) fail("write", "", path_);
}

void AtomicFile::finish() {
  if (!file_) return;
  if (std::fflush(file_.get()) != 0 || ::fsync(::fileno(file_.get())) != 0) fail("write", "", path_);
  if (std::fclose(file_.release()) != 0) fail("write", "", path_);
}

void AtomicFile::commit() {
  finish();
  std::error_code error;
  fs::rename(temporary_, path_, error);
  if (error)
    throw Error(Kind::io,
                cat("cannot rename '", temporary_.string(), "' to '", path_.string(), "': ", error.message()));
  temporary_.clear();
}

FileSet::~FileSet() {
  files_.clear();
  std::error_code ignored;  // remove() fails if a folder has files, and such a folder must stay
  for (auto folder = folders_.rbegin(); folder != folders_.rend(); ++folder) fs::remove(*folder, ignored);
}

AtomicFile& FileSet::add(fs::path path) {
  if (const fs::path folder = path.parent_path(); !folder.empty() && !fs::exists(folder)) folders_.push_back(folder);
  return files_.emplace_back(std::move(path));
}

void FileSet::copy(const fs::path& from, const fs::path& to) {
  const File file = open_to_read(from, "file");
  AtomicFile& copy = add(to);
  std::vector<char> block(size_t{1} << 20);
  while (const size_t count = std::fread(block.data(), 1, block.size(), file.get())) copy.write(block.data(), count);
  if (std::ferror(file.get())) throw Error(Kind::io, cat("cannot read '", from.string(), "'"));
  copy.finish();
}

void FileSet::commit() {
  for (AtomicFile& file : files_) file.finish();
  std::error_code error;
  for (const fs::path& file : outdated_) {
    fs::remove(file, error);
    if (error)
      throw Error(Kind::io,
                  cat("cannot remove '", file.string(), "', which belongs to an older model: ", error.message()));
  }
  std::vector<fs::path> renamed;
  try {
    for (auto file = files_.rbegin(); file != files_.rend(); ++file) {
      file->commit();
      renamed.push_back(file->path());
    }
  } catch (const Error&) {
    for (const fs::path& file : renamed) fs::remove(file, error);
    throw;
  }
  std::set<fs::path> folders;
  for (const fs::path& file : renamed) folders.insert(file.has_parent_path() ? file.parent_path() : fs::path("."));
  for (const fs::path& folder : folders) flush_folder(folder);
}

int remove_parts_of_dead_processes(const fs::path& prefix) {
  constexpr std::string_view kEnding = ".part", kFolderOfModel = ".model";
  const std::string start = prefix.filename().string();
  int removed = 0;
  std::error_code error;
  for (const auto& entry :
       fs::directory_iterator(prefix.has_parent_path() ? prefix.parent_path() : fs::path("."), error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(start)) continue;
    if (name.ends_with(kFolderOfModel) && entry.is_directory(error))
      removed += remove_parts_of_dead_processes(entry.path() / "");
    if (!name.ends_with(kEnding)) continue;
    const std::string_view whole = std::string_view(name).substr(0, name.size() - kEnding.size());
    const std::string_view digits = whole.substr(whole.rfind('.') + 1);
    pid_t process = 0;
    if (const auto [end, status] = std::from_chars(digits.begin(), digits.end(), process);
        status != std::errc() || end != digits.end() || process <= 0)
      continue;
    const bool lives = process != ::getpid() && (::kill(process, 0) == 0 || errno != ESRCH);
    if (!lives && fs::remove(entry.path(), error)) ++removed;
  }
  return removed;
}

void write_text(const fs::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace hctr
