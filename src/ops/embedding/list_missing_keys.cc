#include "ops/embedding/list_missing_keys.h"

namespace hctr::ops {

void list_missing_keys(Context& ctx, KeyBatch batch, const int32_t* rows, std::byte* scratch, MissingKey* found,
                       int32_t* count) {
  HCTR_ON_DEVICE(ctx, list_missing_keys(ctx, batch, rows, scratch, found, count));
}

size_t missing_scratch_bytes(Device device, int64_t key_capacity) {
  if constexpr (kCudaBuild)
    if (device.is_cuda()) return cuda::missing_scratch_bytes(key_capacity);
  return 0;
}

namespace cpu {

void list_missing_keys(Context&, KeyBatch batch, const int32_t* rows, std::byte*, MissingKey* found, int32_t* count) {
  int32_t missing = 0;
  for (int64_t s = 0; s < batch.slots; ++s)
    for (int32_t p = batch.offsets[s * batch.samples]; p < batch.offsets[(s + 1) * batch.samples]; ++p)
      if (rows[p] == 0) found[missing++] = {batch.keys[p], batch.slot_number(s), p};
  *count = missing;
}

}  // namespace cpu
}  // namespace hctr::ops
