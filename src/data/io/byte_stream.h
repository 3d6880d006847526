// The content of a file from front to back: as it is, or unpacked from gzip or Zstandard, which its first bytes tell.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/files.h"

namespace hctr {

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  /// Reads up to `count` bytes of content; fewer only at the end. Errors: Error(io), Error(data) for a damaged or cut
  /// off file.
  virtual size_t read(std::byte* to, size_t count) = 0;
  /// Bytes of the file itself that reading has taken so far.
  virtual int64_t consumed() const = 0;
  /// Goes on at this byte of the content; only forward.
  virtual void skip_to(int64_t offset) = 0;
};

/// Errors: Error(io) when the file cannot be opened.
std::unique_ptr<ByteStream> open_stream(const fs::path&);
/// Whether open_stream() unpacks it.
bool is_packed(const fs::path&);

}  // namespace hctr
