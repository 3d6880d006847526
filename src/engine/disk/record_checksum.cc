#include "engine/disk/record_checksum.h"

#include <cstring>

#include "core/base/file_checksum.h"

#if defined(__x86_64__)
#include <nmmintrin.h>

namespace hctr {
namespace {

__attribute__((target("sse4.2"))) uint32_t checksum_by_instruction(int64_t key, int32_t slot,
                                                                   std::span<const std::byte> record) {
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

bool has_instruction() { return __builtin_cpu_supports("sse4.2") != 0; }

}  // namespace
}  // namespace hctr
#else
namespace hctr {
namespace {

uint32_t checksum_by_instruction(int64_t, int32_t, std::span<const std::byte>) { return 0; }
bool has_instruction() { return false; }

}  // namespace
}  // namespace hctr
#endif

namespace hctr {

uint32_t record_checksum(int64_t key, int32_t slot, std::span<const std::byte> record) {
  static const bool by_instruction = has_instruction();
  if (by_instruction) return checksum_by_instruction(key, slot, record);
  const int64_t identity[2] = {key, slot};
  return crc32_of(record, crc32_of(std::as_bytes(std::span(identity))));
}

}  // namespace hctr
