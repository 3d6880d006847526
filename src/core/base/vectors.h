// Vectors of 16 bytes. Compilers map these vectors to registers and instructions that every processor of the
// architecture has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hctr {

using Bytes16 = uint8_t __attribute__((vector_size(16)));
using Shorts8 = uint16_t __attribute__((vector_size(16)));
using Words4 = uint32_t __attribute__((vector_size(16)));
using Longs2 = uint64_t __attribute__((vector_size(16)));

/// Loads from memory of any alignment.
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

/// The bitwise OR of the four words.
inline uint32_t bits_of(const Words4& words) { return words[0] | words[1] | words[2] | words[3]; }

}  // namespace hctr
