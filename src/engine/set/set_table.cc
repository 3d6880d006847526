#include "engine/set/set_table.h"

#include <algorithm>
#include <utility>

#include "ops/common/copy.h"
#include "ops/embedding/row_sums.h"

namespace hctr {
namespace {

TableSpec with_combiner(TableSpec spec, const std::vector<TableFeature>& features) {
  spec.combiner = combiner_of(features);
  return spec;
}

}  // namespace

SetTable::SetTable(Runtime& runtime, const TableSpec& spec, std::vector<TableFeature> features, int batches)
    : runtime_(runtime),
      features_{std::move(features), spec.dim},
      table_(runtime, with_combiner(spec, features_.all), batches),
      inputs_(static_cast<size_t>(batches)) {
  features_.plain = pooled_alike(features_.all);
}

void SetTable::keep_replaced_memory() {
  if (!replaced_) replaced_.emplace();
  table_.keep_replaced_memory();
}

void SetTable::reserve_input(SetInput& input, int64_t samples, int64_t keys) {
  if (replaced_ && !input.fits(samples, keys) && input.keys > 0) {
    SetInput larger{.samples = input.samples, .keys = input.keys};
    larger.reserve(runtime_, features_, samples, keys, spec().most_batch_keys());
    replaced_->push_back(std::exchange(input, std::move(larger)));
  } else {
    input.reserve(runtime_, features_, samples, keys, spec().most_batch_keys());
  }
}

bool SetTable::lookup_reserved(int64_t samples, int64_t keys) const {
  return lookup_.fits(samples, std::max<int64_t>(keys, 1)) && table_.lookup_reserved(std::max<int64_t>(keys, 1));
}

void SetTable::reserve(int buffer, int64_t samples, int64_t keys) {
  keys = std::max<int64_t>(keys, 1);
  reserve_input(inputs_.at(static_cast<size_t>(buffer)), samples, keys);
  table_.reserve_batch(buffer, keys);
}

Tensor SetTable::keys_of(const SetInput& input) const {
  return {input.of_keys, TensorSpec(DType::i64, {input.batch_keys}), runtime_.device()};
}

Tensor SetTable::offsets_of(const SetInput& input) const {
  return {input.offsets, TensorSpec(DType::i32, {static_cast<int64_t>(features_.all.size()) * input.batch_samples + 1}),
          runtime_.device()};
}

void SetTable::prepare(Context& ctx, int buffer, int64_t samples, std::span<const ops::FeatureBags> features,
                       std::span<const int32_t* const> rows) {
  SetInput& input = inputs_.at(static_cast<size_t>(buffer));
  input.place(ctx, features_, samples, features);
  PlaceRows place;
  if (rows.empty())
    table_.bring_rows(ctx, buffer, keys_of(input), offsets_of(input));
  else
    place = [&](Context& of, const uint32_t* last_row, int32_t* to) {
      for (size_t f = 0; f < rows.size(); ++f)
        ops::place_rows(of, input.range_of(f), rows[f], last_row, f + 1 == rows.size() ? input.batch_keys : 0, to);
    };
  const KeyGradients one_each{input.numbers, input.batch_keys};
  table_.prepare(ctx, buffer, keys_of(input), offsets_of(input), features_.plain ? KeyGradients{} : one_each, place);
}

void SetTable::read_rows(Context& ctx, int buffer, std::span<int32_t* const> to) {
  const SetInput& input = inputs_.at(static_cast<size_t>(buffer));
  for (size_t f = 0; f < to.size(); ++f) ops::read_rows(ctx, input.range_of(f), table_.prepared(buffer).rows, to[f]);
}

void SetTable::confirm(int buffer) {
  table_.confirm_capacity(buffer);
  table_.enforce_limit(buffer);
}

std::optional<Tensor> SetTable::side_by_side(const SetInput& input, std::span<const PlacedVectors> vectors) const {
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

void SetTable::pool(Context& ctx, const EmbeddingTable::Batch& batch, const SetInput& input,
                    std::span<const PlacedVectors> outputs) {
  if (features_.plain)
    if (const auto y = side_by_side(input, outputs)) return table_.pool(ctx, batch, nullptr, *y);
  for (size_t f = 0; f < features_.all.size(); ++f)
    ops::pool_bags(ctx, input.bags_of(features_, f, batch.rows), table_.data().vectors, features_.all[f].pooling,
                   input.vectors_of(runtime_.device(), features_, f, outputs[f]), input.chosen_of(features_, f));
}

void SetTable::forward(Context& ctx, int buffer, std::span<const PlacedVectors> outputs) {
  pool(ctx, table_.prepared(buffer), inputs_.at(static_cast<size_t>(buffer)), outputs);
}

void SetTable::weight_gradients(Context& ctx, int buffer, std::span<const PlacedVectors> gradients,
                                std::span<float* const> dw) {
  const SetInput& input = inputs_.at(static_cast<size_t>(buffer));
  for (size_t f = 0; f < features_.all.size(); ++f) {
    if (!features_.all[f].weighted || !dw[f]) continue;
    // The operator numbers keys from the feature's first offset, so dw[f][i] is the gradient of the weight of the
    // feature's i-th key.
    const ops::BagList bags = input.bags_of(features_, f, table_.prepared(buffer).rows);
    ops::weight_gradients(ctx, bags, table_.data().vectors, features_.all[f].pooling,
                          input.vectors_of(runtime_.device(), features_, f, gradients[f]), dw[f]);
  }
}

Tensor SetTable::gradients_of(Context& ctx, int buffer, std::span<const PlacedVectors> gradients) {
  const SetInput& input = inputs_.at(static_cast<size_t>(buffer));
  const auto count = static_cast<int64_t>(features_.all.size()), dim = spec().dim;
  if (features_.plain) {
    if (const auto dy = side_by_side(input, gradients)) return *dy;
    for (int64_t f = 0; f < count; ++f)
      ops::copy(
          ctx,
          input.vectors_of(runtime_.device(), features_, static_cast<size_t>(f), gradients[static_cast<size_t>(f)]),
          Tensor(input.gradients + f * dim, TensorSpec(DType::f32, {input.batch_samples, dim}, count * dim),
                 runtime_.device()));
    return {input.gradients, TensorSpec(DType::f32, {input.batch_samples, count, dim}), runtime_.device()};
  }
  if (count == 1 && features_.all[0].pooling == ops::BagPooling::none && input.most[0] > 0)
    return {gradients[0].data, TensorSpec(DType::f32, {input.batch_keys, 1, dim}, gradients[0].stride),
            runtime_.device()};
  for (size_t f = 0; f < features_.all.size(); ++f)
    if (input.most[f] > 0)
      ops::key_gradients(ctx, input.bags_of(features_, f, table_.prepared(buffer).rows), features_.all[f].pooling,
                         input.vectors_of(runtime_.device(), features_, f, gradients[f]), input.chosen_of(features_, f),
                         input.gradients);
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
}

void SetTable::report_rows_of_batch(Context& ctx, int buffer, int32_t* host) {
  ops::report_runs(ctx, table_.prepared(buffer).groups, host);
}

void SetTable::reserve_lookup(int64_t samples, int64_t keys) {
  keys = std::max<int64_t>(keys, 1);
  reserve_input(lookup_, samples, keys);
  table_.reserve_lookup(keys);
}

void SetTable::lookup(Context& ctx, int64_t samples, std::span<const ops::FeatureBags> features,
                      std::span<const PlacedVectors> outputs) {
  lookup_.place(ctx, features_, samples, features);
  pool(ctx, table_.find(ctx, keys_of(lookup_), offsets_of(lookup_)), lookup_, outputs);
}

}  // namespace hctr
