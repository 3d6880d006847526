#include "data/norm_record.h"

#include "base/error.h"

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

SlotWalk walk_slots(const std::byte* p, const std::byte* end, const RecordShape& shape, int key_bytes, int32_t* nnz) {
  const auto bad = [](std::string problem) {
    return SlotWalk{.end = SlotWalk::End::bad, .problem = std::move(problem)};
  };
  int64_t first = 0;
  for (const RecordShape::Input& input : shape.inputs) {
    int64_t keys = 0;
    for (int64_t s = 0; s < input.slots; ++s) {
      if (end - p < 4) return {.end = SlotWalk::End::short_of_bytes};
      const auto count = load<int32_t>(p);
      keys += count;
      if (count < 0) return bad(cat(input.name_of(first, s), " says it has ", count, " keys"));
      if (!input.allows(s, count, keys)) return bad(input.excess(first, s, count, keys));
      const int64_t bytes = 4 + static_cast<int64_t>(count) * key_bytes;
      if (end - p < bytes) return {.end = SlotWalk::End::short_of_bytes};
      if (nnz) nnz[first + s] = count;
      p += bytes;
    }
    first += input.slots;
  }
  return {.end = SlotWalk::End::whole, .at = p};
}

}  // namespace hctr
