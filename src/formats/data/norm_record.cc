#include "formats/data/norm_record.h"

#include <algorithm>

#include "core/base/expect.h"

namespace hctr {
NormSizes::NormSizes(const RecordShape& shape, int key_bytes) : slots(shape.slots()) {
  const auto width = static_cast<size_t>(key_bytes);
  numbers = static_cast<size_t>(shape.label_dim + shape.dense_dim) * sizeof(float);
  slot_stride = sizeof(int32_t) + width;
  least = numbers + static_cast<size_t>(slots) * sizeof(int32_t);
  most = least + static_cast<size_t>(shape.max_keys()) * width;
  one_hot = numbers + static_cast<size_t>(slots) * slot_stride;
  one_hot_fits = shape.allows_one_hot();
}

SlotWalk walk_slots(const std::byte* p, const std::byte* end, const RecordShape& shape, int key_bytes,
                    const SlotPlaces& places) {
  const auto bad = [](std::string problem) {
    return SlotWalk{.end = SlotWalk::End::bad, .problem = std::move(problem)};
  };
  const ptrdiff_t stride = 4 + key_bytes;
  int64_t first = 0;
  for (size_t i = 0; i < shape.inputs.size(); ++i) {
    const RecordShape::Input& input = shape.inputs[i];
    if (places.inputs) places.inputs[i] = p;
    const ptrdiff_t one_hot = input.slots * stride;
    if (end - p >= one_hot && input.allows_one_hot() && all_one(p, input.slots, static_cast<size_t>(stride))) {
      // All counts are 1, so no walk is needed. A walk would be slow, because each step waits for the count that was
      // just loaded.
      if (places.nnz) std::fill_n(places.nnz + first, input.slots, 1);
      p += one_hot;
      first += input.slots;
      continue;
    }
    if (places.one_hot) places.one_hot[i] = 0;
    int64_t keys = 0;
    for (int64_t s = 0; s < input.slots; ++s) {
      if (end - p < 4) return {.end = SlotWalk::End::short_of_bytes};
      const auto count = load<int32_t>(p);
      keys += count;
      if (count < 0) return bad(cat(input.name_of(first, s), " states a number of ", count, " keys"));
      if (!input.allows(s, count, keys)) return bad(input.excess(first, s, count, keys));
      const int64_t bytes = 4 + static_cast<int64_t>(count) * key_bytes;
      if (end - p < bytes) return {.end = SlotWalk::End::short_of_bytes};
      if (places.nnz) places.nnz[first + s] = count;
      p += bytes;
    }
    first += input.slots;
  }
  return {.end = SlotWalk::End::whole, .at = p};
}

}  // namespace hctr
