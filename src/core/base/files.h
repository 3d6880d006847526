// Reads whole files, and writes files that appear under their final name only when complete.
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

/// Opens a file for reading. Errors: Error(io) "cannot open <what> '<path>': <reason>".
File open_to_read(const fs::path&, std::string_view what);

/// The file's size in bytes. Errors: those of open_to_read(); Error(io).
int64_t size_of_file(const fs::path&, std::string_view what);

/// Largest text file that read_text() accepts by default. A larger file could exhaust host memory.
inline constexpr int64_t kMostTextBytes = int64_t{1} << 30;
/// Returns the content of a file. Errors: Error(io) naming the file and either the system's reason or, if the file has
/// more than `most` bytes, its size.
std::string read_text(const fs::path&, std::string_view what, int64_t most = kMostTextBytes);

/// Creates the folder that contains `path`, and missing parents. Errors: Error(io).
void create_parent_folder(const fs::path& path);

/// Writes a file under a temporary name in the same folder. commit() flushes the file to disk and renames it. The
/// destructor removes a file that was not committed. Errors: Error(io) from every member that writes.
class AtomicFile {
 public:
  explicit AtomicFile(fs::path path);
  ~AtomicFile();
  AtomicFile(AtomicFile&&) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;

  void write(const void* bytes, size_t count);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Writes at an absolute offset, then seeks back to the end. Used for header counts that are known only after the
  /// data.
  void write_at(long offset, const void* bytes, size_t count);
  /// Flushes the file to disk and closes it under its temporary name. May be called again.
  void finish();
  /// Calls finish(), then renames the file to path().
  void commit();
  const fs::path& path() const { return path_; }
  /// The path of the file until commit().
  const fs::path& temporary() const { return temporary_; }

 private:
  fs::path path_, temporary_;  // temporary_ is empty after commit()
  File file_;                  // null after finish()
};

/// Files that are committed together. commit() writes every file completely before it renames the first, so that a full
/// disk or a signal leaves no partial set. Errors: Error(io) from every member.
class FileSet {
 public:
  FileSet() = default;
  ~FileSet();  // removes empty folders that add() created
  FileSet(const FileSet&) = delete;
  FileSet& operator=(const FileSet&) = delete;
  /// Adds a file for writing. Call finish() on the file after its last byte. The reference stays valid.
  AtomicFile& add(fs::path);
  /// Adds a copy of a file. Errors: Error(io).
  void copy(const fs::path& from, const fs::path& to);
  std::deque<AtomicFile>& files() { return files_; }
  /// Marks a file of an older set. commit() removes the marked files.
  void remove(fs::path path) { outdated_.push_back(std::move(path)); }
  /// Renames the files in reverse order of add() and flushes their folders. After an error, no file of the set has its
  /// final name.
  void commit();

 private:
  std::deque<AtomicFile> files_;
  std::vector<fs::path> outdated_, folders_;
};

/// Removes the temporary files of AtomicFile, "<prefix>*.<process>.part", that processes on this machine left behind
/// when they were killed. Also searches folders "<prefix>*.model". Returns the number of removed files. `prefix` may
/// contain folders. Call this before the process writes files with the prefix.
int remove_parts_of_dead_processes(const fs::path& prefix);

/// Writes a whole file through AtomicFile.
void write_text(const fs::path&, std::string_view text);

}  // namespace hctr
