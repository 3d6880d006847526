#include "data/norm_record.h"

#include "base/error.h"

namespace hctr {
namespace {

std::string name_of(const RecordShape::Input& input, int64_t slot) {
  return cat("slot ", slot, " (of sparse input \"", input.name, "\")");
}

SlotWalk bad(int64_t slot, std::string problem) {
  return {.end = SlotWalk::End::bad, .at = nullptr, .slot = slot, .problem = std::move(problem)};
}

}  // namespace

NormSizes::NormSizes(const RecordShape& shape, int key_bytes) : slots(shape.slots()) {
  const auto width = static_cast<size_t>(key_bytes);
  numbers = static_cast<size_t>(shape.label_dim + shape.dense_dim) * sizeof(float);
  slot_stride = sizeof(int32_t) + width;
  least = numbers + static_cast<size_t>(slots) * sizeof(int32_t);
  most = least + static_cast<size_t>(shape.max_keys()) * width;
  one_hot = numbers + static_cast<size_t>(slots) * slot_stride;
  one_hot_fits = true;
  for (const RecordShape::Input& input : shape.inputs)
    one_hot_fits &= input.max_nnz >= 1 && input.max_keys >= input.slots;
}

SlotWalk walk_slots(const std::byte* p, const std::byte* end, const RecordShape& shape, int key_bytes, int32_t* nnz) {
  int64_t slot = 0;
  for (const RecordShape::Input& input : shape.inputs) {
    int64_t keys = 0;
    for (int64_t s = 0; s < input.slots; ++s, ++slot) {
      if (end - p < 4) return {.end = SlotWalk::End::short_of_bytes};
      const auto count = load<int32_t>(p);
      keys += count;
      if (count < 0) return bad(slot, cat(name_of(input, slot), " says it has ", count, " keys"));
      if (count > input.most_of(s))
        return bad(slot,
                   cat(name_of(input, slot), " has ", count, " keys, more than its max_nnz of ", input.most_of(s)));
      if (keys > input.max_keys)
        return bad(
            slot, cat("sparse input \"", input.name, "\" has ", keys, " keys or more in this sample, up to slot ", slot,
                      ", more than its max_feature_num_per_sample of ", input.max_keys));
      const int64_t bytes = 4 + static_cast<int64_t>(count) * key_bytes;
      if (end - p < bytes) return {.end = SlotWalk::End::short_of_bytes};
      if (nnz) nnz[slot] = count;
      p += bytes;
    }
  }
  return {.end = SlotWalk::End::whole, .at = p};
}

}  // namespace hctr
