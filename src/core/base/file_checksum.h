// Sizes and checksums that detect a modified, truncated or replaced file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/files.h"

namespace hctr {

/// zlib's CRC-32 of `bytes`. `before`: the CRC of the preceding bytes, if the checksum is computed in several calls. A
/// CRC-32 detects every changed byte and every error burst of up to 32 bits. Other damage stays undetected with
/// probability 2^-32. XXH64 would be faster, but zstd does not export its XXH64, and zlib is already linked by the
/// trainer.
uint32_t crc32_of(std::span<const std::byte> bytes, uint32_t before = 0);
/// Returns the CRC of two concatenated byte ranges, given their CRCs. `bytes`: the length of the second range.
uint32_t joined_crc32(uint32_t first, uint32_t second, int64_t bytes);
/// Formats a CRC as eight hexadecimal digits.
std::string crc_text(uint32_t crc);
/// Parses the output of crc_text(). Returns nullopt for any other text.
std::optional<uint32_t> crc_of_text(std::string_view text);

struct FileChecksum {
  int64_t bytes = 0;
  uint32_t crc = 0;
};
/// Reads a whole file and returns its size and CRC. Several threads read a large file. `what`: the file's description
/// in messages. Errors: Error(io).
FileChecksum checksum_of(const fs::path&, std::string_view what);
/// Compares the file's size and checksum with `expected`. Errors: those of checksum_of(); Error(data) naming the file
/// on a mismatch.
void expect_checksum(const fs::path&, std::string_view what, const FileChecksum& expected);

}  // namespace hctr
