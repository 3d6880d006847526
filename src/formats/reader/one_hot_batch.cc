#include "formats/reader/one_hot_batch.h"

#include <algorithm>

#include "core/base/expect.h"

namespace hctr {

OneHotBatch::OneHotBatch(const BatchLayout& layout, std::byte* memory, bool narrow)
    : shape_(layout.shape), view_(layout, memory), narrow_(narrow) {
  for (const BatchShape::Table& table : shape_.tables)
    HCTR_EXPECT(table.slots * shape_.samples <= table.key_capacity, table.key_capacity, " keys for ", shape_.samples,
                " rows of ", table.slots, " slots");
}

void OneHotBatch::start(int64_t rows) {
  rows_ = rows;
  std::vector<KeyForm> forms;
  for (const BatchShape::Table& table : shape_.tables)
    forms.push_back({.count = table.slots * rows, .fits_32 = narrow_, .ones = true, .rows = rows});
  view_.place(forms);
  keys_.clear();
  for (size_t t = 0; t < shape_.tables.size(); ++t)
    for (int64_t s = 0; s < shape_.tables[t].slots; ++s)
      keys_.push_back(view_.tables[t].keys<std::byte>() + s * rows * view_.packed[t].key_bytes);
}

void OneHotBatch::finish() {
  std::fill(view_.label + rows_ * shape_.label_dim, view_.label + shape_.samples * shape_.label_dim, 0.0f);
  std::fill(view_.dense + rows_ * shape_.dense_dim, view_.dense + shape_.samples * shape_.dense_dim, 0.0f);
}

}  // namespace hctr
