// Writes the wire format of Protocol Buffers: https://protobuf.dev/programming-guides/encoding.
#pragma once

#include <cstdint>
#include <string>

namespace hctr {

/// How a field's value is encoded after its tag.
enum class WireType { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

/// Appends the lowest `bytes` bytes of `value`, little-endian.
inline void append_fixed(std::string& to, uint64_t value, int bytes) {
  for (int b = 0; b < bytes; ++b) to += static_cast<char>(value >> (8 * b));
}
/// Appends `value` as a varint: seven bits per byte, lowest first. The eighth bit marks every byte except the last.
inline void append_varint(std::string& to, uint64_t value) {
  for (; value > 127; value >>= 7) to += static_cast<char>((value & 127) | 128);
  to += static_cast<char>(value);
}
inline void append_tag(std::string& to, int field, WireType type) {
  append_varint(to, static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(type));
}

}  // namespace hctr
