// The decompressed content of a file as a byte stream. The format (plain, gzip or Zstandard) is detected by the first
// bytes.
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
  /// Reads up to `count` bytes of the decompressed content; fewer only at the end. Errors, naming the file: Error(io);
  /// Error(data) for a damaged or truncated file.
  virtual size_t read(std::byte* to, size_t count) = 0;
  /// Bytes of the (possibly compressed) file that were read so far.
  virtual int64_t consumed() const = 0;
  /// Moves forward to byte `offset` of the decompressed content. Moving backward is not supported.
  virtual void skip_to(int64_t offset) = 0;
};

/// Opens a file; "-" is the standard input. The standard input and pipes may be plain or gzip. Errors: Error(io) if the
/// file cannot be opened.
std::unique_ptr<ByteStream> open_stream(const fs::path&);
/// Whether the content can be read only sequentially. True for compressed files, the standard input and pipes.
bool is_packed(const fs::path&);
/// Checks that a file can be opened. Skips the standard input and pipes. Errors: Error(io).
void expect_readable(const fs::path&);
/// The name of a stream in messages.
std::string stream_name(const fs::path&);
/// Size of the (possibly compressed) file; 0 if unknown, as for the standard input and pipes.
int64_t stream_bytes(const fs::path&);

}  // namespace hctr
