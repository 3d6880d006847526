// The bytes of a text file: plain, gzip or Zstandard, told apart by the first of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace hctr {

class InputStream {
 public:
  virtual ~InputStream() = default;
  /// Reads up to `count` bytes; 0 at the end alone. Errors: Error(io), Error(data) for a damaged file, both naming it.
  virtual size_t read(char* to, size_t count) = 0;
  /// Bytes of the file itself, packed as they may be, that were read so far.
  virtual int64_t position() const = 0;
};

/// "-" is the standard input (plain or gzip). Errors: Error(io) when the file cannot be opened.
std::unique_ptr<InputStream> open_input(const std::string& file);
/// How messages name the file.
std::string input_name(const std::string& file);
/// Bytes of the files together; 0 where one of them does not tell, as the standard input and pipes.
int64_t input_bytes(const std::string& file);

}  // namespace hctr
