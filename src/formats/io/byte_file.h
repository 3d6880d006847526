// A file of bytes, read from front to back in large pieces.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/files.h"

namespace hctr {

/// Errors: Error(io) naming the file, from every member.
class ByteFile {
 public:
  explicit ByteFile(fs::path);
  ~ByteFile();
  ByteFile(ByteFile&&) noexcept;
  ByteFile& operator=(ByteFile&&) = delete;

  const fs::path& path() const { return path_; }
  /// Bytes in the file when it was opened.
  int64_t size() const { return size_; }
  int64_t position() const { return position_; }
  void seek(int64_t position);
  /// Reads up to `count` bytes from the position on; fewer only at the end of the file.
  size_t read(std::byte* to, size_t count);
  /// Reads `count` bytes at `position`, which is not moved. Errors: Error(data) when the file ends before.
  void read_at(int64_t position, std::byte* to, size_t count) const;

 private:
  fs::path path_;
  int descriptor_ = -1;
  int64_t size_ = 0, position_ = 0;
};

}  // namespace hctr
