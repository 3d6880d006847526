// The keys of a TableReader's lookup(), as operators take them.
#pragma once

#include <cstdint>

#include "core/device/tensor.h"
#include "engine/spec/table_spec.h"
#include "ops/embedding/key_batch.h"

namespace hctr {

/// Sizes of the batches of a reader.
struct ReaderSizes {
  int64_t samples = 0, key_capacity = 0;
};

/// `columns`: null pointers if the table's keys are pooled.
inline ops::KeyBatch reader_batch(const TableSpec& spec, const ReaderSizes& sizes, const Tensor& keys,
                                  const Tensor& offsets, const ops::OutputColumns& columns) {
  return {.keys = keys.data<const int64_t>(),
          .offsets = offsets.data<const int32_t>(),
          .slots = spec.slots,
          .samples = sizes.samples,
          .key_capacity = sizes.key_capacity,
          .columns = spec.columns(),
          .unpooled = columns};
}

}  // namespace hctr
