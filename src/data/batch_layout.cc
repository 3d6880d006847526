#include "data/batch_layout.h"

namespace hctr {

BatchLayout::BatchLayout(const BatchShape& of) : shape(of) {
  const auto add = [this](size_t count) {
    const size_t at = bytes;
    bytes = (bytes + count + 255) / 256 * 256;
    return at;
  };
  const auto rows = static_cast<size_t>(shape.samples);
  state = add(sizeof(StepState));
  label = add(rows * static_cast<size_t>(shape.label_dim) * sizeof(float));
  dense = add(rows * static_cast<size_t>(shape.dense_dim) * sizeof(float));
  for (const BatchShape::Table& table : shape.tables) {
    Table at;
    at.offsets = add((static_cast<size_t>(table.slots) * rows + 1) * sizeof(int32_t));
    at.keys = add(static_cast<size_t>(table.key_capacity) * sizeof(int64_t));
    tables.push_back(at);
  }
}

BatchView::BatchView(const BatchLayout& layout, std::byte* buffer)
    : state(reinterpret_cast<StepState*>(buffer + layout.state)),
      label(reinterpret_cast<float*>(buffer + layout.label)),
      dense(reinterpret_cast<float*>(buffer + layout.dense)) {
  for (const BatchLayout::Table& table : layout.tables)
    tables.push_back(
        {reinterpret_cast<int32_t*>(buffer + table.offsets), reinterpret_cast<int64_t*>(buffer + table.keys)});
}

}  // namespace hctr
