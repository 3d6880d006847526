// Keys of records with one key in each slot, from record order into slot order, and what is seen on the way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "data/norm_record.h"
#include "data/one_hot.h"
#include "data/sample_block.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace hctr {

/// Of the slots that were placed.
struct SlotsSeen {
  uint32_t not_one = 0;  ///< not 0: a slot had another number of keys than one
  uint32_t high = 0;     ///< not 0: a key does not fit 32 bits
  bool all_one() const { return not_one == 0; }
};

/// The keys of a block, as Out.
template <class Out>
class KeyColumns {
 public:
  KeyColumns(SampleBlock& block, int64_t rows) : block_(block), rows_(rows) {}
  void reserve(int64_t keys) {
    if constexpr (sizeof(Out) == 4)
      grow(block_.keys_32, keys);
    else
      grow(block_.keys, keys);
  }
  Out* keys() const {
    if constexpr (sizeof(Out) == 4)
      return block_.keys_32.data();
    else
      return block_.keys.data();
  }

  /// `slots` slots of each record, which begin at `from` and are `stride` bytes apart. The key of slot s of from[i]
  /// becomes keys()[at + s * rows + i]. Reads up to 4 bytes past the last slot.
  template <class Key>
  void transpose(std::span<const std::byte* const> from, int64_t slots, size_t stride, int64_t at,
                 SlotsSeen& seen) const {
    Out* const to = keys() + at;
    size_t i = 0;
#if defined(__SSE2__)
    __m128i any = _mm_setzero_si128(), differ = any;  // of each four bytes of a slot: of all, and of all counts
    for (; i + 4 <= from.size(); i += 4) {
      const std::byte *a = from[i], *b = from[i + 1], *c = from[i + 2], *d = from[i + 3];
      Out* column = to + i;
      for (int64_t s = 0; s < slots; ++s, column += rows_) {
        const __m128i va = load_slot<Key>(a), vb = load_slot<Key>(b), vc = load_slot<Key>(c), vd = load_slot<Key>(d);
        a += stride, b += stride, c += stride, d += stride;
        any = _mm_or_si128(any, _mm_or_si128(_mm_or_si128(va, vb), _mm_or_si128(vc, vd)));
        // [count a, count b, low a, low b], and of c and d.
        const __m128i ab = _mm_unpacklo_epi32(va, vb), cd = _mm_unpacklo_epi32(vc, vd);
        differ = _mm_or_si128(differ, _mm_xor_si128(_mm_unpacklo_epi64(ab, cd), _mm_set1_epi32(1)));
        if constexpr (sizeof(Out) == 4) {
          _mm_storeu_si128(reinterpret_cast<__m128i*>(column), _mm_unpackhi_epi64(ab, cd));
        } else if constexpr (sizeof(Key) == 8) {
          const auto pair = [](__m128i x, __m128i y) {
            return _mm_unpacklo_epi64(_mm_srli_si128(x, 4), _mm_srli_si128(y, 4));
          };
          _mm_storeu_si128(reinterpret_cast<__m128i*>(column), pair(va, vb));
          _mm_storeu_si128(reinterpret_cast<__m128i*>(column) + 1, pair(vc, vd));
        } else {
          const __m128i zero = _mm_setzero_si128();
          _mm_storeu_si128(reinterpret_cast<__m128i*>(column), _mm_unpackhi_epi32(ab, zero));
          _mm_storeu_si128(reinterpret_cast<__m128i*>(column) + 1, _mm_unpackhi_epi32(cd, zero));
        }
      }
    }
    uint32_t counts[4], all[4];
    _mm_storeu_si128(reinterpret_cast<__m128i*>(counts), differ);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(all), any);
    seen.not_one |= counts[0] | counts[1] | counts[2] | counts[3];
    if constexpr (sizeof(Key) == 8) seen.high |= all[2];
#endif
    for (; i < from.size(); ++i) {
      const std::byte* p = from[i];
      for (int64_t s = 0; s < slots; ++s, p += stride) {
        const auto key = static_cast<uint64_t>(load<Key>(p + sizeof(int32_t)));
        seen.not_one |= load<uint32_t>(p) ^ 1u;
        seen.high |= static_cast<uint32_t>(key >> 32);
        to[static_cast<size_t>(s * rows_) + i] = static_cast<Out>(key);
      }
    }
  }

 private:
#if defined(__SSE2__)
  /// [count, low, high, whatever follows], or [count, key, 0, 0].
  template <class Key>
  static __m128i load_slot(const std::byte* p) {
    if constexpr (sizeof(Key) == 8)
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    else
      return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
  }
#endif
  SampleBlock& block_;
  int64_t rows_;
};

}  // namespace hctr
