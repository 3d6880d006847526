// Reading whole files, and writing files that appear under their name only when complete.
#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace hctr {

namespace fs = std::filesystem;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

/// Opens for reading. Errors: Error(io) "cannot open <what> '<path>': <reason>".
File open_to_read(const fs::path&, std::string_view what);

/// Returns the content of a file. Errors: Error(io) naming the file and the reason of the system.
std::string read_text(const fs::path&, std::string_view what);

/// Creates the folder of `path`, and its parents, if they are missing. Errors: Error(io).
void create_parent_folder(const fs::path& path);

/// Writes a file under a temporary name in the same folder. commit() flushes it to disk and renames it. Without
/// commit() the destructor removes the file. Errors: Error(io) from every member that writes.
class AtomicFile {
 public:
  explicit AtomicFile(fs::path path);
  ~AtomicFile();
  AtomicFile(AtomicFile&&) noexcept = default;
  AtomicFile& operator=(AtomicFile&&) = delete;

  void write(const void* bytes, size_t count);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Writes at an absolute offset, then returns to the end. For counts in a header that are known only at the end.
  void write_at(long offset, const void* bytes, size_t count);
  void commit();
  const fs::path& path() const { return path_; }

 private:
  fs::path path_, temporary_;
  File file_;
};

/// Writes a whole file by AtomicFile.
void write_text(const fs::path&, std::string_view text);

}  // namespace hctr
