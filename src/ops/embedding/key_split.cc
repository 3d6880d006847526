#include "ops/embedding/key_split.h"

#include <algorithm>

namespace hctr::ops {

size_t key_split_scratch_bytes(Device device, int64_t bags, int32_t ranks) {
  if (device.is_cuda()) {
    if constexpr (kCudaBuild) return cuda::key_split_scratch_bytes(bags, ranks);
  }
  return cpu::key_split_scratch_bytes(bags, ranks);
}

void split_keys(Context& ctx, KeyBatch batch, KeySplit split, uint8_t* present, std::byte* scratch) {
  HCTR_EXPECT(split.messages, "split_keys() needs at least one message");
  HCTR_ON_DEVICE(ctx, split_keys(ctx, batch, split, present, scratch));
}

void merge_keys(Context& ctx, MergeShape shape, Tensor messages, Tensor offsets, Tensor keys) {
  expect_shape("merge_keys messages", messages, {shape.ranks * shape.words});
  expect_shape("merge_keys offsets", offsets, {shape.columns * shape.ranks * shape.samples + 1});
  HCTR_ON_DEVICE(ctx, merge_keys(ctx, shape, messages, offsets, keys));
}

namespace cpu {

size_t key_split_scratch_bytes(int64_t, int32_t) { return 0; }

void split_keys(Context& ctx, KeyBatch batch, KeySplit split, uint8_t* present, std::byte*) {
  if (split.aborted && *split.aborted != 0) return;
  ctx.threads().parallel_for(split.ranks, 1, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const OwnerKeys owner = split.owners[r];
      int64_t* const message = split.messages[r];
      auto* offset = reinterpret_cast<int32_t*>(message);
      int64_t* const keys = message + (owner.keys - owner.begin);
      int32_t at = 0;
      for (int32_t c = owner.first; c < owner.first + owner.count; ++c) {
        const OwnedColumn column = split.columns[c];
        for (int64_t b = 0; b < batch.samples; ++b) {
          *offset++ = at;
          const KeyRange range = batch.keys_of(column.column * batch.samples + b);
          for (int32_t p = range.begin; p < range.end; ++p)
            if (split.sends(column, batch, p)) keys[at++] = batch.keys[p];
          present[owner.present(c, b, batch.samples)] = at > offset[-1];
        }
      }
      *offset = at;
    }
  });
}

void merge_keys(Context&, MergeShape shape, Tensor messages, Tensor offsets, Tensor keys) {
  auto* offset = offsets.data<int32_t>();
  auto* to = keys.data<int64_t>();
  int64_t* const begin = to;
  for (int64_t c = 0; c < shape.columns; ++c)
    for (int64_t r = 0; r < shape.ranks; ++r) {
      const int64_t* message = messages.data<const int64_t>() + r * shape.words;
      const int32_t* from = reinterpret_cast<const int32_t*>(message) + c * shape.samples;
      const int64_t* first = message + OwnerKeys::offset_words(shape.columns, shape.samples) + from[0];
      for (int64_t b = 0; b < shape.samples; ++b) *offset++ = static_cast<int32_t>(to - begin) + from[b] - from[0];
      to = std::copy_n(first, from[shape.samples] - from[0], to);
    }
  *offset = static_cast<int32_t>(to - begin);
}

}  // namespace cpu
}  // namespace hctr::ops
