#include "ops/embedding/bag_input.h"

#include <algorithm>
#include <cstring>

namespace hctr::ops {

void place_bags(Context& ctx, FeatureBags from, int32_t* offsets, int64_t* keys, float* weights) {
  if (from.bags > 0) HCTR_ON_DEVICE(ctx, place_bags(ctx, from, offsets, keys, weights));
}

namespace {

void place_offsets(const FeatureBags& from, int32_t* to) {
  const auto place = [&](auto at) {
    const int64_t begin = at(0);
    for (int64_t b = 1; b <= from.bags; ++b)
      to[b] = to[0] + static_cast<int32_t>(std::clamp<int64_t>(at(b) - begin, 0, from.most));
  };
  if (!from.offsets)
    place([](int64_t b) { return b; });
  else if (from.wide)
    place([of = static_cast<const int64_t*>(from.offsets)](int64_t b) { return of[b]; });
  else
    place([of = static_cast<const int32_t*>(from.offsets)](int64_t b) { return int64_t{of[b]}; });
}

}  // namespace

namespace cpu {

void place_bags(Context&, FeatureBags from, int32_t* offsets, int64_t* keys, float* weights) {
  place_offsets(from, offsets);
  const int64_t first = offsets[0], count = offsets[from.bags] - first;
  if (count == 0) return;
  if (from.type == KeyType::i32)
    std::copy_n(static_cast<const int32_t*>(from.keys), count, keys + first);
  else if (from.type == KeyType::u32)
    std::copy_n(static_cast<const uint32_t*>(from.keys), count, keys + first);
  else
    std::memcpy(keys + first, from.keys, static_cast<size_t>(count) * sizeof(int64_t));
  if (!weights) return;
  if (from.weights)
    std::copy_n(from.weights, count, weights + first);
  else
    std::fill_n(weights + first, count, 1.0f);
}

}  // namespace cpu
}  // namespace hctr::ops
