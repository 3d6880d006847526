#include "engine/set/shared_set.h"

#include <algorithm>

#include "core/base/current_error.h"
#include "core/base/expect.h"
#include "core/device/copy_bytes.h"
#include "engine/set/rank_state.h"
#include "engine/set/set_rules.h"

namespace hctr {

SharedSet::SharedSet(Runtime& runtime, const SetCommunicators& comms, const EmbeddingOptions& options,
                     std::span<const size_t> table_of, std::vector<TableSpec> specs, int buffers)
    : runtime_(runtime), comm_(*comms.device), host_(*comms.host), options_(options), look_up_buffer_(buffers) {
  const std::vector<TablePlace> places = places_of(options, comm_.size());
  for (size_t t = 0; t < specs.size(); ++t) {
    std::vector<TableFeature> features;
    for (size_t f = 0; f < options.features.size(); ++f)
      if (const EmbeddingFeature& feature = options.features[f]; table_of[f] == t)
        features.push_back({f, feature.name, pooling_of(feature.pooling), feature.weighted});
    TableSpec& spec = specs[t];
    if (!spec.direct.empty())
      spec.direct =
          direct_keys({options.tables[t].rows}, false, places[t].of_keys(comm_.size()), comm_.rank()).named_rows();
    if (places[t].spread() && spec.row_limit > 0) spec.row_limit = (spec.row_limit + comm_.size() - 1) / comm_.size();
    const AllocatorScope rows(AllocatorScope::of(runtime.device()), rows_from_allocator(options, options.tables[t]));
    tables_.push_back(std::make_unique<SharedTable>(runtime, comm_, spec, std::move(features), places[t], buffers));
    width_ += tables_.back()->count_numbers();
  }
  counts_ = Buffer(runtime.device(), static_cast<size_t>(2 * comm_.size() * width_) * sizeof(int32_t));
}

void SharedSet::end_group(const Error& error) noexcept {
  comm_.abort(error);
  if (Processes* const others = options_.rank.state()->group->others.get()) others->abort(exit_code(error.kind()));
}

std::vector<KeysFromRank> SharedSet::counts_at(const std::vector<int32_t>& all, const SharedTable& table,
                                               int64_t first) const {
  std::vector<KeysFromRank> of_ranks;
  for (int64_t r = 0; r < comm_.size(); ++r) {
    const auto at = all.begin() + r * width_;
    of_ranks.push_back({at[0], {at + first, at + first + table.count_numbers()}});
  }
  return of_ranks;
}

/// Each rank sends two kinds of counts to each other rank: its number of samples, and for each feature of each table
/// the number of its keys that the receiving rank owns.
void SharedSet::exchange_counts(Context& ctx, int buffer, int64_t samples) {
  const int64_t numbers = comm_.size() * width_;
  auto* const sent = reinterpret_cast<int32_t*>(counts_.data());
  const Tensor out{sent, TensorSpec(DType::i32, {numbers}), runtime_.device()},
      in{sent + numbers, TensorSpec(DType::i32, {numbers}), runtime_.device()};
  std::vector<int32_t> own(static_cast<size_t>(numbers), 0);
  for (int64_t r = 0; r < comm_.size(); ++r) own[static_cast<size_t>(r * width_)] = static_cast<int32_t>(samples);
  from_host(ctx.stream(), out, own);
  int64_t first = 1;
  for (const auto& table : tables_) {
    table->list_counts(ctx, buffer, sent, width_, first);
    first += table->count_numbers();
  }
  const RankRanges ranges = RankRanges::equal(comm_.size(), width_);
  comm_.all_to_all(ctx, out, ranges, in, ranges);
  own = to_host<int32_t>(ctx.stream(), out);
  const std::vector<int32_t> received = to_host<int32_t>(ctx.stream(), in);
  first = 1;
  for (const auto& table : tables_) {
    table->take_counts(buffer, counts_at(own, *table, first), counts_at(received, *table, first));
    first += table->count_numbers();
  }
}

bool SharedSet::send_keys(Context& ctx, int buffer, int64_t samples, std::span<const ops::FeatureBags> bags,
                          const std::function<void(SharedTable&)>& reserve) {
  const auto of = [&](const SharedTable& table) {
    std::vector<ops::FeatureBags> some;
    for (const TableFeature& feature : table.features().all) some.push_back(bags[feature.number]);
    return some;
  };
  agreed([&] {
    for (const auto& table : tables_) {
      int64_t keys = 0;
      for (const ops::FeatureBags& one : of(*table)) keys += one.most;
      table->reserve_own(buffer, samples, keys);
    }
  });
  for (const auto& table : tables_) table->split(ctx, buffer, samples, of(*table));
  exchange_counts(ctx, buffer, samples);
  // every rank knows the number of samples of all ranks, so no exchange is needed
  const bool any = tables_.front()->samples_of_all(buffer) > 0;
  if (!any) return false;
  agreed([&] {
    for (const auto& table : tables_) reserve(*table);
  });
  exchange(ctx, [&](SharedTable& table, std::vector<AllToAll>& all) { table.add_key_exchanges(buffer, all); });
  for (const auto& table : tables_) table->join_batch(ctx, buffer);
  return true;
}

bool SharedSet::begin(Context& ctx, int buffer, int64_t samples, std::span<const ops::FeatureBags> bags, int64_t step) {
  return together([&] {
    const auto reserve = [&](SharedTable& table) {
      table.reserve_received(buffer, options_.most_keys);
      if (!table.table()) return;
      report_keys_outside(*table.table());
      table.table()->reserve_rows(step);
    };
    if (!send_keys(ctx, buffer, samples, bags, reserve)) return false;
    for (const auto& table : tables_) table->prepare(ctx, buffer);
    return true;
  });
}

template <class T>
std::vector<PlacedVectors> SharedSet::of_table(const SharedTable& table, std::span<const FeatureVectors<T>> all) const {
  std::vector<PlacedVectors> some;
  for (const TableFeature& feature : table.features().all) {
    const FeatureVectors<T>& at = all[feature.number];
    some.push_back({const_cast<float*>(at.data), at.stride == 0 ? table.spec().dim : at.stride});
  }
  return some;
}

void SharedSet::bring_vectors(Context& ctx, int buffer, std::span<const FeatureVectors<float>> outputs) {
  for (const auto& table : tables_) table->read_vectors(ctx, buffer);
  exchange(ctx, [&](SharedTable& table, std::vector<AllToAll>& all) { table.add_vector_exchanges(buffer, all); });
  for (const auto& table : tables_) table->write_vectors(ctx, buffer, of_table(*table, outputs));
}

void SharedSet::send_gradients(Context& ctx, int buffer, std::span<const FeatureVectors<const float>> gradients) {
  for (const auto& table : tables_) table->write_gradients(ctx, buffer, of_table(*table, gradients));
  exchange(ctx, [&](SharedTable& table, std::vector<AllToAll>& all) { table.add_gradient_exchange(buffer, all); });
}

void SharedSet::write_vectors(Context& ctx, int buffer, std::span<const FeatureVectors<float>> outputs) {
  together([&] {
    agreed([&] {
      for (const auto& table : tables_) table->confirm(buffer);
    });
    bring_vectors(ctx, buffer, outputs);
  });
}

void SharedSet::weight_gradients(Context& ctx, int buffer, std::span<const FeatureVectors<const float>> gradients,
                                 std::span<float* const> dw) {
  for (const auto& table : tables_) {
    std::vector<float*> some;
    for (const TableFeature& feature : table->features().all) some.push_back(dw[feature.number]);
    table->weight_gradients(ctx, buffer, of_table(*table, gradients), some);
  }
}

void SharedSet::update(Context& ctx, int buffer, std::span<const FeatureVectors<const float>> gradients) {
  together([&] {
    send_gradients(ctx, buffer, gradients);
    for (const auto& table : tables_) table->update(ctx, buffer);
  });
}

std::vector<int64_t> SharedSet::row_gradients(Context& ctx, int buffer,
                                              std::span<const FeatureVectors<const float>> gradients,
                                              std::span<const RowGradients> to, bool ends) {
  return together([&] {
    send_gradients(ctx, buffer, gradients);
    for (size_t t = 0; t < tables_.size(); ++t) tables_[t]->list_row_gradients(ctx, buffer, to[t]);
    std::vector<int64_t> rows;
    for (const auto& table : tables_) rows.push_back(table->rows_of_batch(buffer));
    if (ends) release(ctx, buffer);
    return rows;
  });
}

void SharedSet::release(Context& ctx, int buffer) {
  for (const auto& table : tables_) table->release(ctx, buffer);
}

std::vector<int64_t> SharedSet::keys_received(int buffer) const {
  std::vector<int64_t> keys;
  for (const auto& table : tables_) keys.push_back(table->keys_received(buffer));
  return keys;
}

void SharedSet::look_up(Context& ctx, int64_t samples, std::span<const ops::FeatureBags> bags,
                        std::span<const FeatureVectors<float>> outputs) {
  together([&] {
    const auto reserve = [&](SharedTable& table) {
      if (table.table()) report_keys_outside(*table.table());
      table.reserve_received(look_up_buffer_, options_.most_keys);
    };
    if (!send_keys(ctx, look_up_buffer_, samples, bags, reserve)) return;
    bring_vectors(ctx, look_up_buffer_, outputs);
  });
}

void report_keys_outside(EmbeddingTable& table) {
  try {
    table.check_keys();
  } catch (const Error& error) {
    table.forget_keys_outside();
    throw Error(Kind::data, cat("an earlier batch had a row number that does not exist: ", error.what()));
  }
}

}  // namespace hctr
