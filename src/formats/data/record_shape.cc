#include "formats/data/record_shape.h"

#include "core/base/expect.h"

namespace hctr {

std::string RecordShape::Input::name_of(int64_t first_slot, int64_t slot) const {
  return cat("slot ", first_slot + slot, " (of sparse input \"", name, "\")");
}

std::string RecordShape::Input::excess(int64_t first_slot, int64_t slot, int64_t nnz_of_slot, int64_t keys) const {
  if (nnz_of_slot > most_of(slot))
    return cat(name_of(first_slot, slot), " has ", nnz_of_slot, " keys, more than its max_nnz of ", most_of(slot));
  return cat("sparse input \"", name, "\" has ", keys, " keys in this sample up to slot ", first_slot + slot,
             ", more than its max_feature_num_per_sample of ", max_keys);
}

}  // namespace hctr
