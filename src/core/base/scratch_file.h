// Files for data that do not outlive the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/files.h"

namespace hctr {

/// A file without a name. The system frees the file when this object or the process ends, so no run can open or remove
/// another run's file. Thread-safe.
class ScratchFile {
 public:
  /// Creates the file in `folder`, and `folder` itself if missing. Errors: Error(io) naming the folder.
  explicit ScratchFile(fs::path folder);
  ~ScratchFile();
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  /// Errors of write() and read(): Error(io) naming the folder, the byte offset and the system's reason, such as a full
  /// disk.
  void write(int64_t first, std::span<const std::byte> bytes);
  void read(int64_t first, std::span<std::byte> bytes) const;
  /// Asks the system to load these bytes into the page cache for a later read(). Does not block.
  void read_ahead(int64_t first, int64_t bytes) const noexcept;

  /// Tries to cut the file to `bytes` bytes, which frees disk space. Ignores errors of the system.
  void cut(int64_t bytes) noexcept;

  /// Reserves disk space for the first `bytes` bytes and maps them until munmap(). The mapping stays valid after this
  /// object is destroyed. Errors: Error(io) naming the folder, the bytes and the system's reason.
  std::byte* map(size_t bytes);

  /// Bytes that the system has read from disks for the calling thread so far, in all files. Counts page cache misses of
  /// read() and the bytes of read_ahead(). Always 0 if the system does not count them.
  static int64_t bytes_from_disk() noexcept;

  const fs::path& folder() const { return folder_; }
  /// A path that opens the same file again in this process, for example for direct I/O.
  fs::path path() const;

 private:
  fs::path folder_;
  int descriptor_ = -1;
};

/// Memory mapped from a ScratchFile. The system writes pages to disk when memory is short and reads them back on
/// access.
class ScratchMemory {
 public:
  /// Reserves disk space for all `bytes`. Errors: those of ScratchFile and ScratchFile::map(), such as a full disk.
  ScratchMemory(fs::path folder, size_t bytes);
  ~ScratchMemory();
  ScratchMemory(const ScratchMemory&) = delete;
  ScratchMemory& operator=(const ScratchMemory&) = delete;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  ScratchFile file_;
  size_t bytes_;
  std::byte* data_;
};

}  // namespace hctr
