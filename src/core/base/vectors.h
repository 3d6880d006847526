// Vectors of 16 bytes, which compilers map to processor registers, with instructions that every processor of the kind
// has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hctr {

using Bytes16 = uint8_t __attribute__((vector_size(16)));
using Shorts8 = uint16_t __attribute__((vector_size(16)));
using Words4 = uint32_t __attribute__((vector_size(16)));
using Longs2 = uint64_t __attribute__((vector_size(16)));

/// From and to memory of any alignment.
template <class Vector>
Vector load_vector(const void* from) {
  Vector vector;
  std::memcpy(&vector, from, sizeof vector);
  return vector;
}
template <class Vector>
void store_vector(void* to, const Vector& vector) {
  std::memcpy(to, &vector, sizeof vector);
}

/// All of its bits, those of four words put together.
inline uint32_t bits_of(const Words4& words) { return words[0] | words[1] | words[2] | words[3]; }

}  // namespace hctr
