// Non-temporal stores, which bypass the caches, for values that this core writes once and does not read again. A
// regular store first reads its cache line from memory. Like platform.h, this file has an #if, because only x86
// processors have these instructions.
#pragma once

#include <bit>
#include <cstdint>

#include "core/base/platform.h"

// sanitizers do not notice non-temporal stores, so sanitized builds use regular stores
#if defined(__x86_64__) && !HCTR_SANITIZED
#include <emmintrin.h>
namespace hctr {
inline void store_non_temporal(int64_t* to, int64_t value) { _mm_stream_si64(reinterpret_cast<long long*>(to), value); }
inline void store_non_temporal(uint32_t* to, uint32_t value) {
  _mm_stream_si32(reinterpret_cast<int*>(to), static_cast<int>(value));
}
inline void store_non_temporal(float* to, float value) {
  _mm_stream_si32(reinterpret_cast<int*>(to), std::bit_cast<int>(value));
}
/// Orders non-temporal stores before later stores. Call this before signaling another thread that the values are
/// written.
inline void finish_stores() { _mm_sfence(); }
}  // namespace hctr
#else
namespace hctr {
template <class T>
void store_non_temporal(T* to, T value) {
  *to = value;
}
inline void finish_stores() {}
}  // namespace hctr
#endif

namespace hctr {

/// Whether batches are written by non-temporal stores. Set to false to benchmark regular stores.
inline constexpr bool kNonTemporal = true;

/// Stores a value; kStream selects a non-temporal store. Fast only if consecutive stores fill whole 64-byte lines.
template <bool kStream, class T>
void store(T* to, T value) {
  if constexpr (kStream)
    store_non_temporal(to, value);
  else
    *to = value;
}

}  // namespace hctr
