#include "engine/set/set_input.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/expect.h"
#include "core/device/copy_bytes.h"

namespace hctr {

bool TableFeatures::weighted() const {
  return std::any_of(all.begin(), all.end(), [](const TableFeature& f) { return f.weighted; });
}

int64_t TableFeatures::with_max() const {
  return std::count_if(all.begin(), all.end(), [](const TableFeature& f) { return f.pooling == ops::BagPooling::max; });
}

bool pooled_alike(const std::vector<TableFeature>& features) {
  const ops::BagPooling first = features.front().pooling;
  return first != ops::BagPooling::max && first != ops::BagPooling::none &&
         std::all_of(features.begin(), features.end(),
                     [&](const TableFeature& feature) { return feature.pooling == first && !feature.weighted; });
}

ops::Combiner combiner_of(const std::vector<TableFeature>& features) {
  if (!pooled_alike(features)) return ops::Combiner::sum;
  const ops::BagPooling pooling = features.front().pooling;
  return pooling == ops::BagPooling::mean    ? ops::Combiner::mean
         : pooling == ops::BagPooling::sqrtn ? ops::Combiner::sqrtn
                                             : ops::Combiner::sum;
}

int64_t ample(int64_t needed, int64_t have) { return needed > have ? needed + needed / 4 : have; }

void SetInput::reserve(Runtime& runtime, const TableFeatures& features, int64_t wanted_samples, int64_t wanted_keys,
                       int64_t most_keys) {
  if (fits(wanted_samples, wanted_keys)) return;
  runtime.compute_stream().synchronize();  // queued work uses the old memory
  SetInput to{.samples = ample(wanted_samples, samples),
              .keys = std::min(ample(wanted_keys, keys), std::max(wanted_keys, most_keys))};
  *this = {};  // free the old memory first, because old and new memory together might not fit
  const int64_t count = features.count(), dim = features.dim, largest = features.with_max();
  const bool plain = features.plain, weighted = features.weighted();
  const auto add = [&](DType type, int64_t elements) { return to.arena.add(TensorSpec(type, {elements})); };
  const size_t keys_at = add(DType::i64, to.keys), offsets_at = add(DType::i32, count * to.samples + 1),
               weights_at = add(DType::f32, weighted ? to.keys : 0), numbers_at = add(DType::i32, plain ? 0 : to.keys),
               gradients_at = add(DType::f32, (plain ? to.samples * count : to.keys) * dim),
               chosen_at = add(DType::i32, largest * to.samples * dim);
  to.arena.build(runtime.device());
  to.of_keys = to.arena.get(keys_at).data<int64_t>();
  to.offsets = to.arena.get(offsets_at).data<int32_t>();
  if (weighted) to.weights = to.arena.get(weights_at).data<float>();
  to.gradients = to.arena.get(gradients_at).data<float>();
  if (largest > 0) to.chosen = to.arena.get(chosen_at).data<int32_t>();
  if (!plain) {
    std::vector<int32_t> in_order(static_cast<size_t>(to.keys));
    std::iota(in_order.begin(), in_order.end(), 0);
    from_host(runtime.compute_stream(), to.arena.get(numbers_at), in_order);
    to.numbers = to.arena.get(numbers_at).data<int32_t>();
  }
  *this = std::move(to);
}

void SetInput::place(Context& ctx, const TableFeatures& of, int64_t samples_given,
                     std::span<const ops::FeatureBags> features) {
  batch_samples = samples_given;
  batch_keys = 0;
  most.clear();
  for (size_t f = 0; f < features.size(); ++f) {
    int32_t* const placed = offsets + static_cast<int64_t>(f) * batch_samples;
    ops::place_bags(ctx, features[f], placed, of_keys, weights);
    most.push_back(features[f].most);
    batch_keys += features[f].most;
  }
  batch_keys = std::max<int64_t>(batch_keys, 1);
  HCTR_EXPECT(batch_samples <= samples && batch_keys <= keys, "feature '", of.all.front().name, "': ", batch_samples,
              " samples and ", batch_keys, " keys, memory for ", samples, " and ", keys);
}

ops::BagList SetInput::bags_of(const TableFeatures& of, size_t feature, const int32_t* rows) const {
  return {.offsets = offsets + static_cast<int64_t>(feature) * batch_samples,
          .bags = batch_samples,
          .most = most.at(feature),
          .rows = rows,
          .weights = of.all[feature].weighted ? weights : nullptr};
}

ops::FeatureRange SetInput::range_of(size_t feature) const {
  const int32_t* const begin = offsets + static_cast<int64_t>(feature) * batch_samples;
  return {begin, begin + batch_samples, most.at(feature)};
}

int32_t* SetInput::chosen_of(const TableFeatures& of, size_t feature) const {
  if (of.all[feature].pooling != ops::BagPooling::max) return nullptr;
  const auto before = std::count_if(of.all.begin(), of.all.begin() + static_cast<ptrdiff_t>(feature),
                                    [](const TableFeature& f) { return f.pooling == ops::BagPooling::max; });
  return chosen + before * samples * of.dim;
}

Tensor SetInput::vectors_of(Device device, const TableFeatures& of, size_t feature, const PlacedVectors& at) const {
  const int64_t rows = of.all[feature].pooling == ops::BagPooling::none ? most.at(feature) : batch_samples;
  return {at.data, TensorSpec(DType::f32, {rows, of.dim}, at.stride), device};
}

}  // namespace hctr
