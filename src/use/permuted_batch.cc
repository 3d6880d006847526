#include "use/permuted_batch.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <numeric>
#include <utility>

#include "core/base/random.h"
#include "score/feature_names.h"

namespace hctr {

std::vector<InputFeature> features_of(const DataSection& data) {
  const FeatureNames names = feature_names(data);
  std::vector<InputFeature> features;
  for (size_t d = 0; d < names.dense.size(); ++d)
    features.push_back({names.dense[d], true, 0, static_cast<int64_t>(d)});
  for (size_t t = 0; t < names.slots.size(); ++t)
    for (size_t s = 0; s < names.slots[t].size(); ++s)
      features.push_back({names.slots[t][s], false, t, static_cast<int64_t>(s)});
  // A column may be used both as a number and as a category.
  std::map<std::string, std::array<bool, 2>> kinds;
  for (const InputFeature& feature : features) kinds[feature.name][feature.is_dense] = true;
  for (InputFeature& feature : features)
    if (const auto& [category, number] = kinds.at(feature.name); category && number)
      feature.name += feature.is_dense ? " (number)" : " (category)";
  return features;
}

void permute_feature(const BatchLayout& layout, std::byte* from, const InputFeature& feature,
                     const std::vector<int64_t>& order, std::byte* to) {
  const BatchView source(layout, from), target(layout, to);
  std::memcpy(to, from, source.bytes());
  const auto rows = static_cast<int64_t>(order.size());
  if (feature.is_dense) {
    const int64_t width = layout.shape.dense_dim;
    for (int64_t r = 0; r < rows; ++r)
      target.dense[r * width + feature.index] = source.dense[order[static_cast<size_t>(r)] * width + feature.index];
    return;
  }
  // The bags of a slot are contiguous, so permuting them moves no other slot.
  const int64_t first = feature.index * layout.shape.samples;
  const BatchView::Table &bags = source.tables[feature.input], &bags_to = target.tables[feature.input];
  const bool has_offsets = bags.packed->offsets != PackedKeys::kOnes;
  int32_t at = bags.offset(first);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t other = first + order[static_cast<size_t>(r)];
    if (has_offsets) bags_to.offsets()[first + r] = at;
    for (int32_t k = bags.offset(other); k < bags.offset(other + 1); ++k) bags_to.set_key(at++, bags.key(k));
  }
}

std::vector<int64_t> random_order(int64_t rows, uint64_t seed) {
  std::vector<int64_t> order(static_cast<size_t>(rows));
  std::iota(order.begin(), order.end(), 0);
  for (int64_t r = rows - 1; r > 0; --r) {
    const auto other = static_cast<int64_t>(random_bits(seed, 0, static_cast<uint64_t>(r))) % (r + 1);
    std::swap(order[static_cast<size_t>(r)], order[static_cast<size_t>(other)]);
  }
  return order;
}

}  // namespace hctr
