#include "engine/spec/slot_vector_columns.h"

namespace hctr {

SlotVectorColumns slot_vector_columns(int64_t slots, bool pooled, const std::vector<int64_t>& slot_keys) {
  SlotVectorColumns columns;
  for (int64_t s = 0; s < slots; ++s) {
    columns.of_slot.push_back(static_cast<int32_t>(columns.slots.size()));
    const int64_t count = pooled ? 1 : slot_keys[static_cast<size_t>(s)];
    columns.slots.insert(columns.slots.end(), static_cast<size_t>(count), static_cast<int32_t>(s));
  }
  return columns;
}

SlotVectorColumns slot_vector_columns(const TableSpec& spec) {
  return slot_vector_columns(spec.slots, spec.combiner != ops::Combiner::none, spec.slot_keys);
}

}  // namespace hctr
