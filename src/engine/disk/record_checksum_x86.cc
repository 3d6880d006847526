// Computes the checksum by the CRC-32C instruction. CMake compiles this file for x86 processors, and
// record_checksum_portable.cc for all others.
#include <nmmintrin.h>

#include <cstring>

#include "engine/disk/record_checksum.h"

namespace hctr {
namespace {

__attribute__((target("sse4.2"))) uint32_t crc32c_of(int64_t key, int32_t slot, std::span<const std::byte> record) {
  uint64_t sum = _mm_crc32_u64(static_cast<uint32_t>(slot), static_cast<uint64_t>(key));
  const std::byte* at = record.data();
  const std::byte* const end = at + record.size();
  for (uint64_t word = 0; static_cast<size_t>(end - at) >= sizeof word; at += sizeof word) {
    std::memcpy(&word, at, sizeof word);
    sum = _mm_crc32_u64(sum, word);
  }
  auto rest = static_cast<uint32_t>(sum);
  for (; at < end; ++at) rest = _mm_crc32_u8(rest, static_cast<uint8_t>(*at));
  return rest;
}

}  // namespace

RecordChecksum checksum_by_instruction() { return __builtin_cpu_supports("sse4.2") ? crc32c_of : nullptr; }

}  // namespace hctr
