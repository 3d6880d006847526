// Sizes and checksums that detect a changed, cut or exchanged file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/files.h"

namespace hctr {

/// The CRC-32 of zlib over the bytes, continued from that of the bytes before them. The trainer links zlib anyway. A
/// CRC finds every changed byte and every burst of up to 32 bits; other damage escapes with a chance of one in four
/// billion. (XXH64, which is faster, is not part of zstd's interface.)
uint32_t crc32_of(std::span<const std::byte> bytes, uint32_t before = 0);
/// The checksum of two concatenated pieces, from their checksums. `bytes`: of the second.
uint32_t joined_crc32(uint32_t first, uint32_t second, int64_t bytes);
/// As eight hexadecimal digits.
std::string crc_text(uint32_t crc);
/// The number that crc_text() wrote; nothing for any other text.
std::optional<uint32_t> crc_of_text(std::string_view text);

struct FileChecksum {
  int64_t bytes = 0;
  uint32_t crc = 0;
};
/// Reads a whole file, a large one by several threads. `what`: the word for it in messages. Errors: Error(io).
FileChecksum checksum_of(const fs::path&, std::string_view what);
/// Errors: those of checksum_of(); Error(data) naming the file whose size or checksum is not the expected one.
void expect_checksum(const fs::path&, std::string_view what, const FileChecksum& expected);

}  // namespace hctr
