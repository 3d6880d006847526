// Checksums that detect torn, altered and outdated records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hctr {

/// A checksum of a record and its (key, slot), valid in this process only. If the processor has a CRC-32C instruction,
/// uses it, because it is several times faster than zlib's CRC-32. Otherwise uses zlib's CRC-32. Detects every changed
/// burst of up to 32 bits. Misses other damage with probability 2^-32.
uint32_t record_checksum(int64_t key, int32_t slot, std::span<const std::byte> record);

/// The function that computes record_checksum() by an instruction of the processor. Null if the processor has no such
/// instruction.
using RecordChecksum = uint32_t (*)(int64_t key, int32_t slot, std::span<const std::byte> record);
RecordChecksum checksum_by_instruction();

}  // namespace hctr
