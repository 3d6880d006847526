// The structure of a Norm record: locates its slots and checks the limits on keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "core/base/vectors.h"
#include "formats/data/record_shape.h"

namespace hctr {

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// Sizes that follow from the record shape and the key width, computed once.
struct NormSizes {
  NormSizes() = default;
  NormSizes(const RecordShape&, int key_bytes);

  int64_t slots = 0;
  size_t numbers = 0;         ///< bytes of labels and dense values
  size_t slot_stride = 0;     ///< bytes of a slot with one key
  size_t least = 0;           ///< bytes of a payload without keys
  size_t most = 0;            ///< bytes of a payload with the maximum number of keys
  size_t one_hot = 0;         ///< bytes of a payload with one key per slot
  bool one_hot_fits = false;  ///< one key per slot is within the limits
};

/// Whether each of `slots` slots has exactly one key. `p`: the first slot; `stride`: bytes between slots.
inline bool all_one(const std::byte* p, int64_t slots, size_t stride) {
  uint32_t differ = 0;
  for (int64_t s = 0; s < slots; ++s) differ |= load<uint32_t>(p + static_cast<size_t>(s) * stride) ^ 1u;
  return differ == 0;
}

/// Sum of bytes modulo 256.
inline uint8_t byte_sum(const std::byte* p, size_t count) {
  Bytes16 even = {}, odd = {};  // 16 sums of one byte each
  size_t i = 0;
  for (; i + 32 <= count; i += 32) {
    even += load_vector<Bytes16>(p + i);
    odd += load_vector<Bytes16>(p + i + 16);
  }
  if (i + 16 <= count) {
    even += load_vector<Bytes16>(p + i);
    i += 16;
  }
  const auto sums = reinterpret_cast<Longs2>(even + odd);
  constexpr uint64_t kEvenBytes = 0x00ff00ff00ff00ff;
  const uint64_t pairs = (sums[0] & kEvenBytes) + (sums[0] >> 8 & kEvenBytes) + (sums[1] & kEvenBytes) +
                         (sums[1] >> 8 & kEvenBytes);  // four 16-bit sums
  auto sum = static_cast<uint8_t>(pairs * 0x0001000100010001 >> 48);
  for (; i + 4 <= count; i += 4) {
    const auto word = load<uint32_t>(p + i);
    const uint32_t two = (word & 0x00ff00ffu) + (word >> 8 & 0x00ff00ffu);
    sum = static_cast<uint8_t>(sum + two + (two >> 16));
  }
  for (; i < count; ++i) sum = static_cast<uint8_t>(sum + static_cast<uint8_t>(p[i]));
  return sum;
}

/// The result of walk_slots().
struct SlotWalk {
  enum class End { whole, short_of_bytes, bad };
  End end = End::whole;
  const std::byte* at = nullptr;  ///< the end of the last slot; set only for End::whole
  std::string problem{};          ///< for End::bad: "slot 3 (of sparse input \"deep\") ..."
};

/// Optional outputs of walk_slots(); null to omit.
struct SlotPlaces {
  int32_t* nnz = nullptr;              ///< [slots] keys of each slot
  const std::byte** inputs = nullptr;  ///< [inputs] address of the first slot of each input
  /// [inputs] set to 0 for an input in which some slot does not have exactly one key
  uint8_t* one_hot = nullptr;
};

/// Walks through the slots of a record from the first slot `p`. The record is bad if nnz is negative or exceeds the
/// limits of the shape.
SlotWalk walk_slots(const std::byte* p, const std::byte* end, const RecordShape&, int key_bytes,
                    const SlotPlaces& places = {});

}  // namespace hctr
