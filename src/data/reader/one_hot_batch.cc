#include "data/reader/one_hot_batch.h"

#include <algorithm>

#include "base/error.h"

namespace hctr {

OneHotBatch::OneHotBatch(const BatchLayout& layout, std::byte* memory) : shape_(layout.shape), view_(layout, memory) {
  for (const BatchShape::Table& table : shape_.tables) {
    HCTR_EXPECT(table.slots * shape_.samples <= table.key_capacity, table.key_capacity, " keys for ", shape_.samples,
                " rows of ", table.slots, " slots");
    keys_.resize(keys_.size() + static_cast<size_t>(table.slots));
  }
}

void OneHotBatch::start(int64_t rows) {
  rows_ = rows;
  auto key = keys_.begin();
  for (size_t t = 0; t < shape_.tables.size(); ++t)
    for (int64_t s = 0; s < shape_.tables[t].slots; ++s) *key++ = view_.tables[t].keys + s * rows;
}

void OneHotBatch::finish() {
  std::fill(view_.label + rows_ * shape_.label_dim, view_.label + shape_.samples * shape_.label_dim, 0.0f);
  std::fill(view_.dense + rows_ * shape_.dense_dim, view_.dense + shape_.samples * shape_.dense_dim, 0.0f);
  if (offsets_of_ == rows_) return;
  for (size_t t = 0; t < shape_.tables.size(); ++t) {
    int32_t* offsets = view_.tables[t].offsets;
    for (int64_t s = 0; s < shape_.tables[t].slots; ++s) {
      const auto first = static_cast<int32_t>(s * rows_);
      for (int64_t r = 0; r < rows_; ++r) offsets[r] = first + static_cast<int32_t>(r);
      std::fill(offsets + rows_, offsets + shape_.samples, first + static_cast<int32_t>(rows_));
      offsets += shape_.samples;
    }
    *offsets = static_cast<int32_t>(shape_.tables[t].slots * rows_);
  }
  offsets_of_ = rows_;
}

}  // namespace hctr
