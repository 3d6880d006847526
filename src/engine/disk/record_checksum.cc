#include "engine/disk/record_checksum.h"

#include "core/base/file_checksum.h"

namespace hctr {

uint32_t record_checksum(int64_t key, int32_t slot, std::span<const std::byte> record) {
  static const RecordChecksum by_instruction = checksum_by_instruction();
  if (by_instruction) return by_instruction(key, slot, record);
  const int64_t identity[2] = {key, slot};
  return crc32_of(record, crc32_of(std::as_bytes(std::span(identity))));
}

}  // namespace hctr
