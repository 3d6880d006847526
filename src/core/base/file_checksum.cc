#include "core/base/file_checksum.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <vector>

#include "core/base/expect.h"
#include "core/base/thread_pool.h"

namespace hctr {
namespace {

constexpr int64_t kPartBytes = int64_t{16} << 20;  // one thread reads a part of this size at a time
constexpr int kMostThreads = 8;

}  // namespace

uint32_t crc32_of(std::span<const std::byte> bytes, uint32_t before) {
  return static_cast<uint32_t>(::crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

uint32_t joined_crc32(uint32_t first, uint32_t second, int64_t bytes) {
  return static_cast<uint32_t>(::crc32_combine(first, second, bytes));
}

std::string crc_text(uint32_t crc) {
  char digits[9];
  std::snprintf(digits, sizeof digits, "%08x", crc);
  return digits;
}

std::optional<uint32_t> crc_of_text(std::string_view text) {
  uint32_t crc = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), crc, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return crc;
}

FileChecksum checksum_of(const fs::path& path, std::string_view what) {
  const File file = open_to_read(path, what);
  const auto fail = [&](const char* reason) {
    throw Error(Kind::io, cat("cannot read ", what, " '", path.string(), "': ", reason));
  };
  struct ::stat status {};
  if (::fstat(::fileno(file.get()), &status) != 0) fail(std::strerror(errno));
  const auto bytes = static_cast<int64_t>(status.st_size);
  const int64_t parts = (bytes + kPartBytes - 1) / kPartBytes;
  std::vector<uint32_t> crcs(static_cast<size_t>(parts));
  const auto read_parts = [&](int64_t first, int64_t end) {
    std::vector<std::byte> piece(size_t{1} << 20);
    for (int64_t part = first; part < end; ++part) {
      const int64_t last = std::min(bytes, (part + 1) * kPartBytes);
      for (int64_t at = part * kPartBytes; at < last;) {
        const auto wanted = static_cast<size_t>(std::min<int64_t>(static_cast<int64_t>(piece.size()), last - at));
        const ssize_t count = ::pread(::fileno(file.get()), piece.data(), wanted, at);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) fail(count < 0 ? std::strerror(errno) : "the file was truncated while being read");
        uint32_t& crc = crcs[static_cast<size_t>(part)];
        crc = crc32_of(std::span(piece).first(static_cast<size_t>(count)), crc);
        at += count;
      }
    }
  };
  if (const int threads = static_cast<int>(std::min<int64_t>({parts / 2, usable_cores(), kMostThreads})); threads > 1)
    ThreadPool(threads).parallel_for(parts, 1, read_parts);
  else
    read_parts(0, parts);
  uint32_t crc = 0;
  for (int64_t part = 0; part < parts; ++part)
    crc = joined_crc32(crc, crcs[static_cast<size_t>(part)], std::min(kPartBytes, bytes - part * kPartBytes));
  return {bytes, crc};
}

void expect_checksum(const fs::path& path, std::string_view what, const FileChecksum& expected) {
  const FileChecksum found = checksum_of(path, what);
  if (found.bytes != expected.bytes)
    throw Error(Kind::data, cat("'", path.string(), "' is damaged: the file has ", found.bytes,
                                " bytes, but the manifest states ", expected.bytes));
  if (found.crc != expected.crc)
    throw Error(Kind::data, cat("'", path.string(), "' is damaged: its checksum is ", crc_text(found.crc),
                                ", but the manifest states ", crc_text(expected.crc)));
}

}  // namespace hctr
