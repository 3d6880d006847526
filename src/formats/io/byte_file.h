// A file that is read sequentially in large blocks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/files.h"

namespace hctr {

/// An open file. Errors of all members: Error(io) naming the file.
class ByteFile {
 public:
  explicit ByteFile(fs::path);
  ~ByteFile();
  ByteFile(ByteFile&&) noexcept;
  ByteFile& operator=(ByteFile&&) = delete;

  const fs::path& path() const { return path_; }
  /// File size in bytes at the time of opening.
  int64_t size() const { return size_; }
  int64_t position() const { return position_; }
  void seek(int64_t position);
  /// Reads up to `count` bytes at the current position; fewer only at the end of the file.
  size_t read(std::byte* to, size_t count);
  /// Reads `count` bytes at `position` without changing the current position. Errors: Error(data) if the file is too
  /// short.
  void read_at(int64_t position, std::byte* to, size_t count) const;

 private:
  fs::path path_;
  int descriptor_ = -1;
  int64_t size_ = 0, position_ = 0;
};

}  // namespace hctr
