#include "formats/data/batch_layout.h"

#include <algorithm>

#include "core/base/expect.h"

namespace hctr {
namespace {

/// Returns the offset of a part with `count` bytes and sets `bytes` to the next aligned offset.
size_t add_part(size_t& bytes, size_t count) {
  const size_t at = bytes;
  bytes = (bytes + count + 255) / 256 * 256;
  return at;
}

size_t offset_bytes(const BatchShape& shape, const BatchShape::Table& table) {
  return static_cast<size_t>(table.slots * shape.samples + 1) * sizeof(int32_t);
}

}  // namespace

BatchLayout::BatchLayout(const BatchShape& of, int64_t stride, DType dtype)
    : shape(of), dense_stride(std::max(stride, of.dense_dim)), dense_dtype(dtype) {
  const auto rows = static_cast<size_t>(shape.samples);
  state = add_part(bytes, sizeof(StepState));
  header = add_part(bytes, sizeof(int64_t) + shape.tables.size() * sizeof(PackedKeys));
  label = add_part(bytes, rows * static_cast<size_t>(shape.label_dim) * sizeof(float));
  dense = add_part(bytes, rows * static_cast<size_t>(shape.dense_dim) * sizeof(float));
  packed = bytes;
  for (const BatchShape::Table& table : shape.tables) {
    const size_t keys = static_cast<size_t>(table.key_capacity) * sizeof(int64_t);
    for (size_t* const of_buffer : {&bytes, &unpacked_bytes}) {
      Table at;
      at.offsets = add_part(*of_buffer, offset_bytes(shape, table));
      at.keys = add_part(*of_buffer, keys);
      if (of_buffer == &unpacked_bytes) tables.push_back(at);
    }
  }
  if (unpacks_dense())
    unpacked_dense = add_part(unpacked_bytes, rows * static_cast<size_t>(dense_stride) * size_of(dense_dtype));
}

BatchView::BatchView(const BatchLayout& of, std::byte* buffer)
    : layout(&of),
      state(reinterpret_cast<StepState*>(buffer + of.state)),
      used(reinterpret_cast<int64_t*>(buffer + of.header)),
      packed(reinterpret_cast<PackedKeys*>(used + 1)),
      label(reinterpret_cast<float*>(buffer + of.label)),
      dense(reinterpret_cast<float*>(buffer + of.dense)) {
  for (size_t t = 0; t < of.tables.size(); ++t) tables.push_back({packed + t, buffer, of.shape.samples});
}

void BatchView::place(std::span<const KeyForm> forms) const {
  const BatchShape& shape = layout->shape;
  HCTR_EXPECT(forms.size() == shape.tables.size(), forms.size(), " forms of ", shape.tables.size(), " tables");
  size_t bytes = layout->packed;
  for (size_t t = 0; t < forms.size(); ++t) {
    const KeyForm& form = forms[t];
    HCTR_EXPECT(form.count <= shape.tables[t].key_capacity, "a batch may not have more than ",
                shape.tables[t].key_capacity, " keys in one input");
    PackedKeys& to = packed[t];
    to = {.count = static_cast<int32_t>(form.count),
          .rows = form.ones ? static_cast<int32_t>(form.rows) : 0,
          .key_bytes = static_cast<int16_t>(form.fits_32 || form.sign_extends ? 4 : 8),
          .sign_extends = form.sign_extends,
          .slots = form.by_sample ? static_cast<int32_t>(shape.tables[t].slots) : 0};
    HCTR_EXPECT(!form.by_sample || (form.ones && form.count == form.rows * shape.tables[t].slots),
                "keys ordered by sample need exactly one key in each slot");
    if (!form.ones) to.offsets = static_cast<int64_t>(add_part(bytes, offset_bytes(shape, shape.tables[t])));
    to.keys =
        static_cast<int64_t>(add_part(bytes, static_cast<size_t>(form.count) * static_cast<size_t>(to.key_bytes)));
  }
  *used = static_cast<int64_t>(bytes);
}

}  // namespace hctr
