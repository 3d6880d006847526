// Non-temporal stores, which bypass the caches: for values that this core writes once and does not read again. A plain
// store first reads the line that it fills.
#pragma once

#include <bit>
#include <cstdint>

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)  // ThreadSanitizer does not see such writes
#include <emmintrin.h>
namespace hctr {
inline void store_non_temporal(int64_t* to, int64_t value) { _mm_stream_si64(reinterpret_cast<long long*>(to), value); }
inline void store_non_temporal(uint32_t* to, uint32_t value) {
  _mm_stream_si32(reinterpret_cast<int*>(to), static_cast<int>(value));
}
inline void store_non_temporal(float* to, float value) {
  _mm_stream_si32(reinterpret_cast<int*>(to), std::bit_cast<int>(value));
}
/// Orders the stores before later ones: call it before another thread learns of the values.
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

/// Whether rows are written into batches by non-temporal stores; false for comparison.
inline constexpr bool kNonTemporal = true;

/// Fast when whole lines of 64 bytes are filled one after the other.
template <bool kStream, class T>
void store(T* to, T value) {
  if constexpr (kStream)
    store_non_temporal(to, value);
  else
    *to = value;
}

}  // namespace hctr
