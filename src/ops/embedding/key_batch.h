// The keys of one batch as kernels see them: bags in slot-major order.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/base/platform.h"

namespace hctr::ops {

/// How the rows of a bag are pooled: sum, sum / number of keys, sum / sqrt(number of keys), or not pooled.
enum class Combiner { sum, mean, sqrtn, none };

/// Keys [begin, end) of a batch.
struct KeyRange {
  int32_t begin, end;
};

/// The output columns of each slot if keys are not pooled: one column per key position in the bag. On the device.
struct OutputColumns {
  const int32_t* of_slot = nullptr;  // [slots] first column of each slot
  const int32_t* slots = nullptr;    // [columns] slot of each column
};

/// Bag (slot s, sample b) has the number s * samples + b and the keys offsets[bag] up to offsets[bag + 1]. All arrays
/// are on one device.
///
/// A batch has `columns` output vectors per sample; vector (column, b) has the number column * samples + b. If keys are
/// pooled, a slot has one column, and a bag has the same number as its vector. With Combiner::none, key i of a bag
/// gives the vector in column i of its slot. The slot must have as many columns as its largest bag has keys. A bag's
/// columns after its last key have no key.
struct KeyBatch {
  const int64_t* keys = nullptr;     // [key_capacity]; defined up to offsets[bags()]
  const int32_t* offsets = nullptr;  // [bags() + 1]
  int64_t slots = 0, samples = 0, key_capacity = 0;
  int64_t columns = 0;                    // equals slots if pooled
  OutputColumns unpooled{};               // null if pooled
  const int32_t* slot_numbers = nullptr;  // [slots] global slot numbers of a rank's slots; null: 0, 1, 2, ...
  const int32_t* gradients = nullptr;     // [key_capacity] gradient number of each key; null: the number of its vector

  HCTR_HD int64_t bags() const { return slots * samples; }
  HCTR_HD int64_t size() const { return offsets[bags()]; }
  HCTR_HD int64_t vectors() const { return columns * samples; }
  HCTR_HD int32_t slot_number(int64_t slot) const {
    return slot_numbers ? slot_numbers[slot] : static_cast<int32_t>(slot);
  }

  /// The keys whose rows are combined to the vector with number `vector`.
  HCTR_HD KeyRange keys_of(int64_t vector) const {
    if (!unpooled.slots) return {offsets[vector], offsets[vector + 1]};
    const auto column = static_cast<uint32_t>(vector) / static_cast<uint32_t>(samples);
    const int64_t slot = unpooled.slots[column], bag = slot * samples + (vector - column * samples);
    const int32_t key = offsets[bag] + static_cast<int32_t>(column) - unpooled.of_slot[slot], end = offsets[bag + 1];
    return key < end ? KeyRange{key, key + 1} : KeyRange{end, end};
  }
  /// The slot number of key p. Finds the last slot whose keys start at or before p.
  HCTR_HD int32_t slot_of(int32_t p) const {
    int64_t low = 0, high = slots - 1;
    while (low < high) {
      const int64_t middle = (low + high + 1) / 2;
      if (offsets[middle * samples] <= p)
        low = middle;
      else
        high = middle - 1;
    }
    return slot_number(low);
  }
  /// The gradient number of key p of `bag`: from the list `gradients`, or the number of the key's vector.
  HCTR_HD int64_t gradient_of(int64_t bag, int64_t p) const {
    if (gradients) return gradients[p];
    if (!unpooled.slots) return bag;
    const auto slot = static_cast<uint32_t>(bag) / static_cast<uint32_t>(samples);
    return (unpooled.of_slot[slot] + p - offsets[bag]) * samples + (bag - slot * samples);
  }
  /// The weight of each key in a vector.
  HCTR_HD float weight(Combiner combiner, int64_t vector) const {
    if (combiner == Combiner::sum || combiner == Combiner::none) return 1.0f;
    const int32_t n = offsets[vector + 1] - offsets[vector];
    if (n <= 1) return 1.0f;
    return 1.0f / (combiner == Combiner::mean ? static_cast<float>(n) : sqrtf(static_cast<float>(n)));
  }
};

}  // namespace hctr::ops
