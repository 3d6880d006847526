#include "engine/set/set_table.h"

#include <algorithm>
#include <numeric>

#include "core/device/copy_bytes.h"
#include "ops/common/copy.h"

namespace hctr {
namespace {

bool pooled_alike(const std::vector<TableFeature>& features) {
  const ops::BagPooling first = features.front().pooling;
  return first != ops::BagPooling::max && first != ops::BagPooling::none &&
         std::all_of(features.begin(), features.end(),
                     [&](const TableFeature& feature) { return feature.pooling == first && !feature.weighted; });
}

ops::Combiner combiner_of(ops::BagPooling pooling) {
  return pooling == ops::BagPooling::mean    ? ops::Combiner::mean
         : pooling == ops::BagPooling::sqrtn ? ops::Combiner::sqrtn
                                             : ops::Combiner::sum;
}

TableSpec with_combiner(TableSpec spec, const std::vector<TableFeature>& features) {
  spec.combiner = pooled_alike(features) ? combiner_of(features.front().pooling) : ops::Combiner::sum;
  return spec;
}

/// More than is needed now, so that batches that grow a little at a time do not take memory each time.
int64_t ample(int64_t needed, int64_t have) { return needed > have ? needed + needed / 4 : have; }

}  // namespace

SetTable::SetTable(Runtime& runtime, const TableSpec& spec, std::vector<TableFeature> features, int batches)
    : runtime_(runtime),
      features_(std::move(features)),
      plain_(pooled_alike(features_)),
      weighted_(std::any_of(features_.begin(), features_.end(), [](const TableFeature& f) { return f.weighted; })),
      table_(runtime, with_combiner(spec, features_), batches),
      inputs_(static_cast<size_t>(batches)) {}

void SetTable::allocate(Input& input, int64_t samples, int64_t keys) {
  const auto count = static_cast<int64_t>(features_.size()), dim = spec().dim;
  if (samples <= input.samples && keys <= input.keys) return;
  runtime_.compute_stream().synchronize();  // what the memory of before is used by
  samples = ample(samples, input.samples);
  keys = std::min(ample(keys, input.keys), std::max(keys, spec().most_batch_keys()));
  input = {.samples = samples, .keys = keys};
  const auto largest = std::count_if(features_.begin(), features_.end(),
                                     [](const TableFeature& f) { return f.pooling == ops::BagPooling::max; });
  const auto add = [&](DType type, int64_t elements) { return input.arena.add(TensorSpec(type, {elements})); };
  const size_t of_keys = add(DType::i64, keys), offsets = add(DType::i32, count * samples + 1),
               weights = add(DType::f32, weighted_ ? keys : 0), numbers = add(DType::i32, plain_ ? 0 : keys),
               gradients = add(DType::f32, (plain_ ? samples * count : keys) * dim),
               chosen = add(DType::i32, largest * samples * dim);
  input.arena.build(runtime_.device());
  input.of_keys = input.arena.get(of_keys).data<int64_t>();
  input.offsets = input.arena.get(offsets).data<int32_t>();
  if (weighted_) input.weights = input.arena.get(weights).data<float>();
  input.gradients = input.arena.get(gradients).data<float>();
  if (largest > 0) input.chosen = input.arena.get(chosen).data<int32_t>();
  if (plain_) return;
  std::vector<int32_t> in_order(static_cast<size_t>(keys));
  std::iota(in_order.begin(), in_order.end(), 0);
  from_host(runtime_.compute_stream(), input.arena.get(numbers), in_order);
  input.numbers = input.arena.get(numbers).data<int32_t>();
}

void SetTable::reserve(int buffer, int64_t samples, int64_t keys) {
  keys = std::max<int64_t>(keys, 1);
  allocate(inputs_.at(static_cast<size_t>(buffer)), samples, keys);
  table_.reserve_batch(buffer, keys);
}

void SetTable::place(Context& ctx, Input& input, int64_t samples, std::span<const ops::FeatureBags> features) {
  input.batch_samples = samples;
  input.batch_keys = 0;
  input.most.clear();
  for (size_t f = 0; f < features.size(); ++f) {
    int32_t* const placed = input.offsets + static_cast<int64_t>(f) * samples;
    ops::place_offsets(ctx, features[f], placed);
    ops::place_keys(ctx, features[f], placed, input.of_keys, input.weights);
    input.most.push_back(features[f].most);
    input.batch_keys += features[f].most;
  }
  input.batch_keys = std::max<int64_t>(input.batch_keys, 1);
  HCTR_EXPECT(samples <= input.samples && input.batch_keys <= input.keys, "table '", spec().name, "': ", samples,
              " samples and ", input.batch_keys, " keys, memory for ", input.samples, " and ", input.keys);
}

Tensor SetTable::keys_of(const Input& input) const {
  return {input.of_keys, TensorSpec(DType::i64, {input.batch_keys}), runtime_.device()};
}

Tensor SetTable::offsets_of(const Input& input) const {
  return {input.offsets, TensorSpec(DType::i32, {static_cast<int64_t>(features_.size()) * input.batch_samples + 1}),
          runtime_.device()};
}

ops::BagList SetTable::bags_of(const Input& input, size_t feature, const int32_t* rows) const {
  return {.offsets = input.offsets + static_cast<int64_t>(feature) * input.batch_samples,
          .bags = input.batch_samples,
          .most = input.most.at(feature),
          .rows = rows,
          .weights = features_[feature].weighted ? input.weights : nullptr};
}

int32_t* SetTable::chosen_of(const Input& input, size_t feature) const {
  if (features_[feature].pooling != ops::BagPooling::max) return nullptr;
  const auto before = std::count_if(features_.begin(), features_.begin() + static_cast<ptrdiff_t>(feature),
                                    [](const TableFeature& f) { return f.pooling == ops::BagPooling::max; });
  return input.chosen + before * input.samples * spec().dim;
}

void SetTable::prepare(Context& ctx, int buffer, int64_t samples, std::span<const ops::FeatureBags> features) {
  Input& input = inputs_.at(static_cast<size_t>(buffer));
  place(ctx, input, samples, features);
  table_.bring_rows(ctx, buffer, keys_of(input), offsets_of(input));
  if (plain_)
    table_.prepare(ctx, buffer, keys_of(input), offsets_of(input));
  else
    table_.prepare(ctx, buffer, keys_of(input), offsets_of(input), {input.numbers, input.batch_keys});
}

void SetTable::confirm(int buffer) {
  table_.confirm_capacity(buffer);
  table_.enforce_limit(buffer);
}

Tensor SetTable::vectors_of(const Input& input, size_t feature, const PlacedVectors& at) const {
  const int64_t rows =
      features_[feature].pooling == ops::BagPooling::none ? input.most.at(feature) : input.batch_samples;
  return {at.data, TensorSpec(DType::f32, {rows, spec().dim}, at.stride), runtime_.device()};
}

std::optional<Tensor> SetTable::side_by_side(const Input& input, std::span<const PlacedVectors> vectors) const {
  const auto count = static_cast<int64_t>(vectors.size()), dim = spec().dim, stride = vectors.front().stride;
  if (stride < count * dim && input.batch_samples > 1) return std::nullopt;
  for (int64_t f = 0; f < count; ++f) {
    const PlacedVectors& at = vectors[static_cast<size_t>(f)];
    if (at.stride != stride || at.data != vectors.front().data + f * dim) return std::nullopt;
  }
  return Tensor(vectors.front().data,
                TensorSpec(DType::f32, {input.batch_samples, count, dim}, std::max(stride, count * dim)),
                runtime_.device());
}

void SetTable::pool(Context& ctx, const EmbeddingTable::Batch& batch, const Input& input,
                    std::span<const PlacedVectors> outputs) {
  if (plain_)
    if (const auto y = side_by_side(input, outputs)) return table_.pool(ctx, batch, nullptr, *y);
  for (size_t f = 0; f < features_.size(); ++f)
    ops::pool_bags(ctx, bags_of(input, f, batch.rows), table_.data().vectors, features_[f].pooling,
                   vectors_of(input, f, outputs[f]), chosen_of(input, f));
}

void SetTable::forward(Context& ctx, int buffer, std::span<const PlacedVectors> outputs) {
  pool(ctx, table_.prepared(buffer), inputs_.at(static_cast<size_t>(buffer)), outputs);
}

void SetTable::weight_gradients(Context& ctx, int buffer, std::span<const PlacedVectors> gradients,
                                std::span<float* const> dw) {
  const Input& input = inputs_.at(static_cast<size_t>(buffer));
  for (size_t f = 0; f < features_.size(); ++f) {
    if (!features_[f].weighted || !dw[f]) continue;
    // The operator numbers gradients as positions of the table, the caller as keys of the feature.
    const ops::BagList bags = bags_of(input, f, table_.prepared(buffer).rows);
    ops::weight_gradients(ctx, bags, table_.data().vectors, features_[f].pooling, vectors_of(input, f, gradients[f]),
                          dw[f]);
  }
}

Tensor SetTable::gradients_of(Context& ctx, int buffer, std::span<const PlacedVectors> gradients) {
  const Input& input = inputs_.at(static_cast<size_t>(buffer));
  const auto count = static_cast<int64_t>(features_.size()), dim = spec().dim;
  if (plain_) {
    if (const auto dy = side_by_side(input, gradients)) return *dy;
    for (int64_t f = 0; f < count; ++f)
      ops::copy(ctx, vectors_of(input, static_cast<size_t>(f), gradients[static_cast<size_t>(f)]),
                Tensor(input.gradients + f * dim, TensorSpec(DType::f32, {input.batch_samples, dim}, count * dim),
                       runtime_.device()));
    return {input.gradients, TensorSpec(DType::f32, {input.batch_samples, count, dim}), runtime_.device()};
  }
  if (count == 1 && features_[0].pooling == ops::BagPooling::none && input.most[0] > 0)
    return {gradients[0].data, TensorSpec(DType::f32, {input.batch_keys, 1, dim}, gradients[0].stride),
            runtime_.device()};
  for (size_t f = 0; f < features_.size(); ++f)
    if (input.most[f] > 0)
      ops::key_gradients(ctx, bags_of(input, f, table_.prepared(buffer).rows), features_[f].pooling,
                         vectors_of(input, f, gradients[f]), chosen_of(input, f), input.gradients);
  return {input.gradients, TensorSpec(DType::f32, {input.batch_keys, 1, dim}), runtime_.device()};
}

void SetTable::update(Context& ctx, int buffer, std::span<const PlacedVectors> gradients) {
  const Tensor dy = gradients_of(ctx, buffer, gradients);
  table_.sum_long_runs(ctx, buffer, dy);
  table_.update(ctx, buffer, dy);
}

void SetTable::list_row_gradients(Context& ctx, int buffer, std::span<const PlacedVectors> gradients,
                                  const RowGradients& to) {
  const Tensor dy = gradients_of(ctx, buffer, gradients);
  const int64_t keys = inputs_.at(static_cast<size_t>(buffer)).batch_keys;
  table_.sum_long_runs(ctx, buffer, dy);
  table_.list_row_gradients(ctx, buffer, dy, to.keys,
                            Tensor(to.values, TensorSpec(DType::f32, {keys, spec().dim}), runtime_.device()));
  table_.leave_unchanged(ctx, buffer);
}

int64_t SetTable::rows_of_batch(int buffer) {
  int32_t runs = 0;
  const StreamRef stream = runtime_.compute_stream();
  copy_bytes(stream, &runs, &table_.prepared(buffer).groups.counts->runs, sizeof runs);
  stream.synchronize();
  return runs;
}

void SetTable::reserve_lookup(int64_t samples, int64_t keys) {
  keys = std::max<int64_t>(keys, 1);
  allocate(lookup_, samples, keys);
  table_.reserve_lookup(keys);
}

void SetTable::lookup(Context& ctx, int64_t samples, std::span<const ops::FeatureBags> features,
                      std::span<const PlacedVectors> outputs) {
  place(ctx, lookup_, samples, features);
  pool(ctx, table_.find(ctx, keys_of(lookup_), offsets_of(lookup_)), lookup_, outputs);
}

}  // namespace hctr
