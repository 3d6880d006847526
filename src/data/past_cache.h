// Stores that leave the caches alone: for what this core writes once and does not read again. A plain store first reads the line that it is about to fill.
#pragma once

#include <bit>
#include <cstdint>

#if defined(__SSE2__) && defined(__x86_64__) && !defined(__SANITIZE_THREAD__)  // that sanitizer does not see them
#include <emmintrin.h>
#define HCTR_PAST_CACHE 1
#else
#define HCTR_PAST_CACHE 0
#endif

namespace hctr {

/// How rows are written into batches; false: by plain stores, for comparison.
inline constexpr bool kPastCache = true;

/// Whole lines of 64 bytes should be filled one after the other.
template <bool kPast>
void store(int64_t* to, int64_t value) {
#if HCTR_PAST_CACHE
  if constexpr (kPast) return _mm_stream_si64(reinterpret_cast<long long*>(to), value);
#endif
  *to = value;
}
template <bool kPast>
void store(float* to, float value) {
#if HCTR_PAST_CACHE
  if constexpr (kPast) return _mm_stream_si32(reinterpret_cast<int*>(to), std::bit_cast<int>(value));
#endif
  *to = value;
}

/// Before another thread is told of them.
inline void finish_stores() {
#if HCTR_PAST_CACHE
  _mm_sfence();
#endif
}

}  // namespace hctr
