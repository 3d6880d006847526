#include "ops/embedding/owner_split.h"

#include <algorithm>
#include <numeric>

namespace hctr::ops {

size_t split_scratch_bytes(Device device, int64_t lengths) {
  if (!device.is_cuda()) return 0;
  size_t bytes = 0;
  if constexpr (kCudaBuild) bytes = cuda::split_scratch_bytes(lengths + 1);
  return bytes;
}

void split_by_owner(Context& ctx, const int64_t* keys, const int32_t* offsets, OwnerSplit split) {
  HCTR_ON_DEVICE(ctx, split_by_owner(ctx, keys, offsets, split));
}
void add_lengths(Context& ctx, const int32_t* lengths, int64_t count, int32_t* offsets, std::byte* scratch) {
  HCTR_ON_DEVICE(ctx, add_lengths(ctx, lengths, count, offsets, scratch));
}
void find_sent(Context& ctx, const int32_t* places, const int32_t* rows, int64_t count, int32_t* found) {
  if (count > 0) HCTR_ON_DEVICE(ctx, find_sent(ctx, places, rows, count, found));
}

namespace cpu {

void split_by_owner(Context&, const int64_t* keys, const int32_t* offsets, OwnerSplit split) {
  const int64_t all = split.ranks * split.bags;
  std::fill_n(split.lengths, all + 1, 0);
  for (int64_t bag = 0; bag < split.bags; ++bag)
    for (int32_t p = offsets[bag]; p < offsets[bag + 1]; ++p)
      ++split.lengths[rank_of_key(keys[p], split.ranks) * split.bags + bag];
  std::exclusive_scan(split.lengths, split.lengths + all + 1, split.begin, 0);
  for (int64_t bag = 0; bag < split.bags; ++bag)
    for (int32_t p = offsets[bag]; p < offsets[bag + 1]; ++p) {
      const int32_t at = split.begin[rank_of_key(keys[p], split.ranks) * split.bags + bag]++;
      split.sent[at] = keys[p];
      split.places[p] = at + 1;
    }
  std::exclusive_scan(split.lengths, split.lengths + all + 1, split.begin, 0);
}

void add_lengths(Context&, const int32_t* lengths, int64_t count, int32_t* offsets, std::byte*) {
  std::exclusive_scan(lengths, lengths + count, offsets, 0);
}

void find_sent(Context&, const int32_t* places, const int32_t* rows, int64_t count, int32_t* found) {
  for (int64_t p = 0; p < count; ++p) found[p] = rows[places[p] - 1] != 0 ? places[p] : 0;
}

}  // namespace cpu
}  // namespace hctr::ops
