// The columns that the vectors of each slot have in a batch.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/spec/table_spec.h"

namespace hctr {

/// A slot has one column, or one per key of a bag if keys are not pooled. These arrays are in host memory;
/// ops::OutputColumns has their copies on the device.
struct SlotVectorColumns {
  std::vector<int32_t> of_slot{};  ///< [slots] first column of each slot
  std::vector<int32_t> slots{};    ///< [columns] slot of each column
};

/// `slot_keys`: [slots] maximum keys per bag; not read if `pooled`.
SlotVectorColumns slot_vector_columns(int64_t slots, bool pooled, const std::vector<int64_t>& slot_keys);
SlotVectorColumns slot_vector_columns(const TableSpec&);

}  // namespace hctr
