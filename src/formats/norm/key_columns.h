// Transposes keys of records with one key per slot into slot-major order, and collects facts about the keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/vectors.h"
#include "formats/data/norm_record.h"
#include "formats/data/one_hot.h"
#include "formats/data/sample_block.h"

namespace hctr {

/// Facts about the transposed slots.
struct SlotsSeen {
  uint32_t not_one = 0;  ///< nonzero if some slot does not have exactly one key
  uint32_t high = 0;     ///< nonzero if some key exceeds 32 bits
  bool all_one() const { return not_one == 0; }
};

/// The key array of a block, with elements of type Out.
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

  /// Transposes `slots` slots of each record. `from`: address of the first slot in each record; `stride`: bytes from
  /// slot to slot. The key of slot s in from[i] is written to keys()[at + s * rows + i]. Reads up to 4 bytes past the
  /// last slot.
  template <class Key>
  void transpose(std::span<const std::byte* const> from, int64_t slots, size_t stride, int64_t at,
                 SlotsSeen& seen) const {
    Out* const to = keys() + at;
    size_t i = 0;
    Words4 any = {}, differ = {};  // any: OR of all words of all slots; differ: OR of (count ^ 1) of all slots
    for (; i + 4 <= from.size(); i += 4) {
      const std::byte *a = from[i], *b = from[i + 1], *c = from[i + 2], *d = from[i + 3];
      Out* column = to + i;
      for (int64_t s = 0; s < slots; ++s, column += rows_) {
        const Words4 va = load_slot<Key>(a), vb = load_slot<Key>(b), vc = load_slot<Key>(c), vd = load_slot<Key>(d);
        a += stride, b += stride, c += stride, d += stride;
        any |= va | vb | vc | vd;
        // ab = [count a, count b, low a, low b]; cd likewise for records c and d.
        const Words4 ab = __builtin_shufflevector(va, vb, 0, 4, 1, 5), cd = __builtin_shufflevector(vc, vd, 0, 4, 1, 5);
        differ |= __builtin_shufflevector(ab, cd, 0, 1, 4, 5) ^ 1u;
        if constexpr (sizeof(Out) == 4) {
          store_vector(column, __builtin_shufflevector(ab, cd, 2, 3, 6, 7));
        } else if constexpr (sizeof(Key) == 8) {
          store_vector(column, __builtin_shufflevector(va, vb, 1, 2, 5, 6));
          store_vector(column + 2, __builtin_shufflevector(vc, vd, 1, 2, 5, 6));
        } else {
          const Words4 zero = {};
          store_vector(column, __builtin_shufflevector(ab, zero, 2, 4, 3, 5));
          store_vector(column + 2, __builtin_shufflevector(cd, zero, 2, 4, 3, 5));
        }
      }
    }
    seen.not_one |= bits_of(differ);
    if constexpr (sizeof(Key) == 8) seen.high |= any[2];
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
  /// Loads a slot as [count, low, high, any bytes] for 8-byte keys, [count, key, 0, 0] for 4-byte keys.
  template <class Key>
  static Words4 load_slot(const std::byte* p) {
    if constexpr (sizeof(Key) == 8) return load_vector<Words4>(p);
    return reinterpret_cast<Words4>(Longs2{load<uint64_t>(p), 0});
  }
  SampleBlock& block_;
  int64_t rows_;
};

}  // namespace hctr
