// The content of a file as one stream of bytes: plain, gzip or Zstandard, detected by its first bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/base/files.h"

namespace hctr {

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  /// Reads up to `count` bytes of content; fewer only at the end.
  /// Errors: Error(io); Error(data) for a damaged or truncated file. Both name the file.
  virtual size_t read(std::byte* to, size_t count) = 0;
  /// Bytes of the file itself, compressed or not, that were read so far.
  virtual int64_t consumed() const = 0;
  /// Moves forward to byte `offset` of the content. It cannot move back.
  virtual void skip_to(int64_t offset) = 0;
};

/// "-" is the standard input. It, and pipes, may be plain or gzip. Errors: Error(io) when the file cannot be opened.
std::unique_ptr<ByteStream> open_stream(const fs::path&);
/// Whether the content can only be read from front to back: compressed files, the standard input, pipes.
bool is_packed(const fs::path&);
/// Opens the file and closes it again, but for the standard input and pipes. Errors: Error(io).
void expect_readable(const fs::path&);
/// How messages name the file.
std::string stream_name(const fs::path&);
/// Size of the file itself; 0 where it is unknown: the standard input, pipes.
int64_t stream_bytes(const fs::path&);

}  // namespace hctr
