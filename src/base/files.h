// Whole files: read, written so that a half-written one never bears the final name, and their folders.
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

/// The whole content. Errors: Error(io) naming the file and the system's reason.
std::string read_text(const fs::path&, std::string_view what);

/// Creates the folder of `path`, and its parents, where missing. Errors: Error(io).
void create_parent_folder(const fs::path& path);

/// A file under a temporary name beside its final one; commit() flushes it to disk and renames it. A writer destroyed
/// without commit() leaves nothing. Errors: Error(io) from every member that writes.
class AtomicFile {
 public:
  explicit AtomicFile(fs::path path);
  ~AtomicFile();
  AtomicFile(AtomicFile&&) noexcept = default;
  AtomicFile& operator=(AtomicFile&&) = delete;

  void write(const void* bytes, size_t count);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Writes at an absolute offset, then returns to the end: for counts in headers known only at the end.
  void write_at(long offset, const void* bytes, size_t count);
  void commit();
  const fs::path& path() const { return path_; }

 private:
  fs::path path_, temporary_;
  File file_;
};

/// AtomicFile for a whole text.
void write_text(const fs::path&, std::string_view text);

}  // namespace hctr
