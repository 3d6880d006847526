// A file for data that do not outlive the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/files.h"

namespace hctr {

/// A file without a name: it is gone when this object or the process ends, in any way, so that no run finds, takes or
/// removes another run's file. Several threads may call its members concurrently.
class ScratchFile {
 public:
  /// In this folder, which is created if it is missing. Errors: Error(io) naming the folder.
  explicit ScratchFile(fs::path folder);
  ~ScratchFile();
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  /// Errors, of both: Error(io) naming the folder, the place and the reason of the system, such as a full disk.
  void write(int64_t first, std::span<const std::byte> bytes);
  void read(int64_t first, std::span<std::byte> bytes) const;
  /// Asks the system to cache these bytes soon, for a later read(), and does not wait for them.
  void read_ahead(int64_t first, int64_t bytes) const noexcept;

  /// Frees the file's disk space after this many bytes, if the system can.
  void cut(int64_t bytes) noexcept;

  /// Bytes that the system has read from disks for the calling thread so far, in any file: by read(), on cache misses,
  /// and by read_ahead(). Always 0 if the system does not count them.
  static int64_t bytes_from_disk() noexcept;

  const fs::path& folder() const { return folder_; }

 private:
  friend class ScratchMemory;
  fs::path folder_;
  int descriptor_ = -1;
};

/// Memory in a file without a name: the system writes it to the disk when memory is short, and reads it back on access.
class ScratchMemory {
 public:
  /// Reserves disk space for all of it at the start. Errors: Error(io) naming the folder, the bytes and the reason of
  /// the system, such as a full disk.
  ScratchMemory(fs::path folder, size_t bytes);
  ~ScratchMemory();
  ScratchMemory(const ScratchMemory&) = delete;
  ScratchMemory& operator=(const ScratchMemory&) = delete;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  ScratchFile file_;
  size_t bytes_;
  std::byte* data_ = nullptr;
};

}  // namespace hctr
