#include "ops/embedding/wire_keys.h"

#include <algorithm>

namespace hctr::ops {

size_t packed_keys_scratch_bytes(Device device, int64_t bags) {
  if (device.is_cuda()) {
    if constexpr (kCudaBuild) return cuda::packed_keys_scratch_bytes(bags);
  }
  return cpu::packed_keys_scratch_bytes(bags);
}

void pack_keys(Context& ctx, KeyBatch batch, KeySplit split, WireKeys packed, uint8_t* present, int32_t* vectors,
               Tensor counts, std::byte* scratch) {
  expect_shape("pack_keys counts", counts, {2 * int64_t{split.ranks}});
  HCTR_ON_DEVICE(ctx, pack_keys(ctx, batch, split, packed, present, vectors, counts, scratch));
}

void merge_packed_keys(Context& ctx, MergeShape shape, WireKeys received, const int32_t* first, int32_t first_bag,
                       Tensor offsets, Tensor keys, int32_t* vectors, std::byte* scratch) {
  expect_shape("merge_packed_keys offsets", offsets, {shape.columns * shape.ranks * shape.samples + 1});
  HCTR_ON_DEVICE(ctx, merge_packed_keys(ctx, shape, received, first, first_bag, offsets, keys, vectors, scratch));
}

namespace cpu {

size_t packed_keys_scratch_bytes(int64_t) { return 0; }

void pack_keys(Context&, KeyBatch batch, KeySplit split, WireKeys packed, uint8_t* present, int32_t* vectors,
               Tensor counts, std::byte*) {
  auto* count = counts.data<int32_t>();
  std::fill_n(count, 2 * split.ranks, 0);
  int32_t keys = 0, listed = 0, bag = 0;
  for (int32_t c = 0; c < split.count; ++c) {
    const OwnedColumn column = split.columns[c];
    const OwnerKeys owner = split.owners[column.owner];
    const int32_t keys_before = keys, listed_before = listed;
    for (int64_t b = 0; b < batch.samples; ++b, ++bag) {
      const KeyRange range = batch.keys_of(column.column * batch.samples + b);
      const int32_t before = keys;
      for (int32_t p = range.begin; p < range.end; ++p) {
        if (!split.sends(column, batch, p)) continue;
        packed.keys[keys] = batch.keys[p];
        packed.bags[keys++] = bag;
      }
      const int64_t index = owner.present(c, b, batch.samples);
      present[index] = keys > before;
      if (keys > before) vectors[listed++] = static_cast<int32_t>(index);
    }
    count[2 * column.owner] += keys - keys_before;
    count[2 * column.owner + 1] += listed - listed_before;
  }
}

void merge_packed_keys(Context&, MergeShape shape, WireKeys received, const int32_t* first, int32_t first_bag,
                       Tensor offsets, Tensor keys, int32_t* vectors, std::byte*) {
  auto* offset = offsets.data<int32_t>();
  auto* to = keys.data<int64_t>();
  const int64_t of_rank = shape.columns * shape.samples;
  std::fill_n(offset, of_rank * shape.ranks + 1, 0);
  for (int64_t r = 0; r < shape.ranks; ++r)
    for (int32_t i = first[r]; i < first[r + 1]; ++i) {
      const int64_t bag = received.bags[i] - first_bag, c = bag / shape.samples,
                    b = r * shape.samples + bag % shape.samples;
      if (++offset[c * shape.ranks * shape.samples + b + 1] == 1)
        *vectors++ = static_cast<int32_t>(b * shape.columns + c);
    }
  for (int64_t i = 0; i < of_rank * shape.ranks; ++i) offset[i + 1] += offset[i];
  for (int64_t r = 0; r < shape.ranks; ++r)
    for (int32_t i = first[r], in_bag = 0; i < first[r + 1]; ++i) {
      in_bag = i > first[r] && received.bags[i] == received.bags[i - 1] ? in_bag + 1 : 0;
      const int64_t bag = received.bags[i] - first_bag, c = bag / shape.samples,
                    b = r * shape.samples + bag % shape.samples;
      to[offset[c * shape.ranks * shape.samples + b] + in_bag] = received.keys[i];
    }
}

}  // namespace cpu
}  // namespace hctr::ops
