// Reading whole files, and writing files that appear under their name only when complete.
#pragma once

#include <cstdint>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hctr {

namespace fs = std::filesystem;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

/// Opens for reading. Errors: Error(io) "cannot open <what> '<path>': <reason>".
File open_to_read(const fs::path&, std::string_view what);

/// The bytes of a file. Errors: as open_to_read(); Error(io).
int64_t size_of_file(const fs::path&, std::string_view what);

/// More than any text needs, and less than would take the host's memory.
inline constexpr int64_t kMostTextBytes = int64_t{1} << 30;
/// Returns the content of a file of at most `most` bytes. Errors: Error(io) naming the file and the reason of the
/// system, or its size.
std::string read_text(const fs::path&, std::string_view what, int64_t most = kMostTextBytes);

/// Creates the folder of `path`, and its parents, if they are missing. Errors: Error(io).
void create_parent_folder(const fs::path& path);

/// Writes a file under a temporary name in the same folder. commit() flushes it to disk and renames it. Without
/// commit() the destructor removes the file. Errors: Error(io) from every member that writes.
class AtomicFile {
 public:
  explicit AtomicFile(fs::path path);
  ~AtomicFile();
  AtomicFile(AtomicFile&&) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;

  void write(const void* bytes, size_t count);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Writes at an absolute offset, then returns to the end. For counts in a header that are known only at the end.
  void write_at(long offset, const void* bytes, size_t count);
  /// Finishes writing: flushes to disk and closes the file, which keeps its temporary name. May be called again.
  void finish();
  /// finish(), then the rename.
  void commit();
  const fs::path& path() const { return path_; }
  /// Where the bytes are until commit().
  const fs::path& temporary() const { return temporary_; }

 private:
  fs::path path_, temporary_;  // temporary_ is empty after commit()
  File file_;                  // null after finish()
};

/// Files that belong together. All are written before the first is renamed, so that neither a full disk nor a signal
/// leaves half of them. Errors: Error(io) from every member.
class FileSet {
 public:
  FileSet() = default;
  ~FileSet();  // removes folders that it made and that hold nothing
  FileSet(const FileSet&) = delete;
  FileSet& operator=(const FileSet&) = delete;
  /// A file to write. finish() it when its last byte is written; the reference stays valid.
  AtomicFile& add(fs::path);
  /// Adds a copy of a file. Errors: Error(io).
  void copy(const fs::path& from, const fs::path& to);
  std::deque<AtomicFile>& files() { return files_; }
  /// A file of an older set that commit() removes.
  void remove(fs::path path) { outdated_.push_back(std::move(path)); }
  /// Renames the files, the first one last, and flushes their folders. After an error none of them has its final name.
  void commit();

 private:
  std::deque<AtomicFile> files_;
  std::vector<fs::path> outdated_, folders_;
};

/// Removes files "<prefix>*.<process>.part" that AtomicFile of a process on this machine left when it was killed, also
/// in folders "<prefix>*.model", and returns how many. `prefix` may contain folders. Call it before this process writes
/// files of the prefix.
int remove_parts_of_dead_processes(const fs::path& prefix);

/// Writes a whole file by AtomicFile.
void write_text(const fs::path&, std::string_view text);

}  // namespace hctr
