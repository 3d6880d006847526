#include <memory>
#include <utility>
#include <vector>

#include "capi/array.h"
#include "capi/call.h"
#include "capi/embedding_handle.h"
#include "capi/rank_handle.h"
#include "core/base/expect.h"
#include "hctr/embedding.h"

namespace hctr::capi {
namespace {

/// Converts `value` to an enum with `count` values.
template <class Enum>
Enum enum_of(int32_t value, int32_t count, const std::string& what) {
  if (value < 0 || value >= count) throw Error(Kind::usage, cat(what, " is ", value, "; expected 0 to ", count - 1));
  return static_cast<Enum>(value);
}

EmbeddingOptimizer optimizer_of(const hctr_optimizer& from, const std::string& what) {
  EmbeddingOptimizer to;
  to.rule = enum_of<EmbeddingOptimizer::Rule>(from.rule, 11, what + ": rule");
  to.rows = enum_of<EmbeddingOptimizer::Rows>(from.rows, 3, what + ": rows");
  to.formula = enum_of<EmbeddingOptimizer::Formula>(from.formula, 3, what + ": formula");
  to.row_wise = from.row_wise != 0;
  to.beta1 = from.beta1;
  to.beta2 = from.beta2;
  to.epsilon = from.epsilon;
  to.momentum = from.momentum;
  to.smoothing = from.smoothing;
  to.initial = from.initial;
  to.beta = from.beta;
  to.lambda1 = from.lambda1;
  to.lambda2 = from.lambda2;
  to.weight_decay = from.weight_decay;
  to.most_gradient = from.most_gradient;
  return to;
}

EmbeddingTableOptions table_of(const hctr_table& from, size_t number) {
  EmbeddingTableOptions to;
  const std::string what = cat("table ", number);
  to.name = text_of(from.name, (what + ": its name").c_str());
  to.dim = from.dim;
  to.rows = from.rows;
  to.format = enum_of<EmbeddingTableOptions::Format>(from.format, 3, what + ": format");
  if (from.optimizer) to.optimizer = optimizer_of(read_struct(from.optimizer, "hctr_optimizer"), what + ": optimizer");
  to.initial.kind = enum_of<EmbeddingStart::Kind>(from.initial, 4, what + ": initial");
  if (from.initial != HCTR_UNIFORM || from.initial_value != 0) to.initial.value = from.initial_value;
  to.most_rows = from.most_rows;
  to.when_full = enum_of<EmbeddingTableOptions::WhenFull>(from.when_full, 4, what + ": when_full");
  if (from.min_count != 0) to.min_count = from.min_count;
  if (from.admit_probability != 0) to.admit_probability = from.admit_probability;
  to.expire_after = from.expire_after;
  to.marks_changes = from.marks_changes != 0;
  to.placement.where = enum_of<EmbeddingPlacement::Where>(from.placement, 4, what + ": placement");
  to.placement.rank = from.whole_on - 1;
  return to;
}

EmbeddingOptions options_of(const hctr_embedding_options& from) {
  EmbeddingOptions to;
  for (size_t i = 0; i < from.table_count; ++i)
    to.tables.push_back(table_of(read_struct(from.tables, i, "hctr_table"), i));
  for (size_t i = 0; i < from.feature_count; ++i) {
    const hctr_feature feature = read_struct(from.features, i, "hctr_feature");
    const std::string what = cat("feature ", i);
    to.features.push_back({text_of(feature.name, (what + ": its name").c_str()),
                           text_of(feature.table, (what + ": its table").c_str()),
                           enum_of<Pooling>(feature.pooling, 5, what + ": pooling"), feature.weighted != 0});
  }
  to.gpu = from.gpu;
  to.stream = from.stream;
  if (from.threads != 0) to.threads = from.threads;
  to.seed = from.seed;
  if (from.batches != 0) to.batches = from.batches;
  if (from.most_keys != 0) to.most_keys = from.most_keys;
  if (from.device_bytes != 0) to.device_bytes = from.device_bytes;
  to.host_bytes = from.host_bytes;
  if (from.disk) to.disk = from.disk;
  to.disk_bytes = from.disk_bytes;
  if (from.rank) to.rank = from.rank->rank;
  to.allocator = {from.allocate, from.free, from.allocator_user};
  return to;
}

/// Checks that an array is in memory of the set's device.
void check_device(const EmbeddingSet& set, const hctr_array& array, const std::string& what) {
  if (array.data && (array.gpu < 0 ? -1 : array.gpu) != set.options().gpu)
    throw Error(Kind::usage, cat(what, " is ", array.gpu < 0 ? "in host memory" : cat("on GPU ", array.gpu),
                                 ", but the embeddings are ",
                                 set.options().gpu < 0 ? "in host memory" : cat("on GPU ", set.options().gpu)));
}

std::vector<FeatureKeys> keys_of(const hctr_embedding& embedding, int64_t samples, const hctr_feature_keys* keys) {
  const EmbeddingSet& set = embedding.set;
  std::vector<FeatureKeys> all;
  all.reserve(embedding.texts.size());
  for (size_t f = 0; f < embedding.texts.size(); ++f) {
    const hctr_feature_keys from = read_struct(keys, f, "hctr_feature_keys");
    const std::string &what = embedding.texts[f].keys, &offsets = embedding.texts[f].offsets,
                      &weights = embedding.texts[f].weights;
    FeatureKeys to;
    to.keys = contiguous(from.keys, 1, what);
    to.type = element_type(from.keys, what);
    to.count = from.keys.shape[0];
    check_device(set, from.keys, what);
    if (from.offsets.data) {
      to.offsets = contiguous(from.offsets, 1, offsets);
      to.offsets_type = element_type(from.offsets, offsets);
      if (from.offsets.shape[0] != samples + 1)
        throw Error(Kind::usage,
                    cat(offsets, " are ", from.offsets.shape[0], ", and ", samples, " samples need ", samples + 1));
      check_device(set, from.offsets, offsets);
    }
    if (from.weights.data) {
      to.weights = static_cast<const float*>(contiguous(from.weights, 1, weights));
      if (from.weights.dtype != HCTR_F32 || from.weights.shape[0] != to.count)
        throw Error(Kind::usage, cat(weights, ": ", from.weights.shape[0], " of type ", from.weights.dtype, ", and ",
                                     to.count, " of f32 are needed"));
      check_device(set, from.weights, weights);
    }
    all.push_back(to);
  }
  return all;
}

/// Views of the vectors of each feature. `text`: what errors call them. `rows`: the expected number of vectors of each
/// feature.
template <class T>
std::vector<FeatureVectors<T>> vectors_of(const hctr_embedding& embedding, const hctr_array* arrays,
                                          const std::string FeatureTexts::*text, const std::vector<int64_t>& rows) {
  expect_given(arrays, text == &FeatureTexts::vectors ? "vectors" : "gradients");
  std::vector<FeatureVectors<T>> all;
  all.reserve(embedding.texts.size());
  for (size_t f = 0; f < embedding.texts.size(); ++f) {
    const std::string& what = embedding.texts[f].*text;
    const Matrix matrix = matrix_of(arrays[f], what);
    const int64_t dim = embedding.texts[f].dim;
    if (matrix.columns != dim || matrix.rows != rows[f])
      throw Error(Kind::usage, cat(what, " have shape [", matrix.rows, ", ", matrix.columns, "], expected [", rows[f],
                                   ", ", dim, "]"));
    check_device(embedding.set, arrays[f], what);
    all.push_back({matrix.data, matrix.stride});
  }
  return all;
}

/// The gradients of a batch's vectors.
std::vector<FeatureVectors<const float>> gradients_of(const hctr_embedding& embedding, int64_t batch,
                                                      const hctr_array* arrays) {
  return vectors_of<const float>(embedding, arrays, &FeatureTexts::gradients, embedding.set.vectors_of_batch(batch));
}

std::vector<int64_t> rows_of(const EmbeddingSet& set, int64_t samples, const std::vector<FeatureKeys>& keys) {
  std::vector<int64_t> rows;
  for (size_t f = 0; f < keys.size(); ++f)
    rows.push_back(set.options().features[f].pooling == Pooling::none ? keys[f].count : samples);
  return rows;
}

}  // namespace

std::vector<FeatureTexts> texts_of(const EmbeddingOptions& options) {
  std::vector<FeatureTexts> texts;
  for (const EmbeddingFeature& feature : options.features) {
    const std::string of = cat(" of feature '", feature.name, "'"), keys = "keys" + of;
    FeatureTexts one{keys, "offsets of the " + keys, "weights of the " + keys, "vectors" + of, "gradients" + of};
    for (const EmbeddingTableOptions& table : options.tables)
      if (table.name == feature.table) one.dim = table.dim;
    texts.push_back(std::move(one));
  }
  return texts;
}

}  // namespace hctr::capi

using hctr::capi::call;
using hctr::capi::expect_given;
using hctr::capi::set_of;

hctr_status hctr_optimizer_defaults(int32_t rule, int32_t formula, hctr_optimizer* optimizer) {
  return call([&] {
    using Optimizer = hctr::EmbeddingOptimizer;
    expect_given(optimizer, "hctr_optimizer_defaults(): the optimizer");
    const auto kind = hctr::capi::enum_of<Optimizer::Rule>(rule, 11, "rule");
    const auto whose = hctr::capi::enum_of<Optimizer::Formula>(formula, 3, "formula");
    const Optimizer from = whose == Optimizer::Formula::torch   ? Optimizer::torch(kind)
                           : whose == Optimizer::Formula::keras ? Optimizer::keras(kind)
                                                                : Optimizer{.rule = kind};
    *optimizer = {sizeof *optimizer, rule,          static_cast<int32_t>(from.rows),
                  formula,           from.row_wise, from.beta1,
                  from.beta2,        from.epsilon,  from.momentum,
                  from.smoothing,    from.initial,  from.beta,
                  from.lambda1,      from.lambda2,  from.weight_decay,
                  from.most_gradient};
  });
}

hctr_status hctr_embedding_create(const hctr_embedding_options* options, hctr_embedding** embedding) {
  return call([&] {
    expect_given(embedding, "hctr_embedding_create(): the pointer to the handle");
    const auto given = hctr::capi::read_struct(options, "hctr_embedding_options");
    *embedding = std::make_unique<hctr_embedding>(hctr::capi::options_of(given)).release();
  });
}

void hctr_embedding_destroy(hctr_embedding* embedding) { delete embedding; }

hctr_status hctr_embedding_set_stream(hctr_embedding* embedding, void* stream) {
  return call([&] { set_of(embedding).set_stream(stream); });
}

hctr_status hctr_embedding_forward(hctr_embedding* embedding, int64_t samples, const hctr_feature_keys* keys,
                                   const hctr_array* vectors, int64_t* batch) {
  return call([&] {
    hctr::EmbeddingSet& set = set_of(embedding);
    expect_given(batch, "hctr_embedding_forward(): the pointer to the batch");
    const auto given = hctr::capi::keys_of(*embedding, samples, keys);
    *batch = set.forward(samples, given,
                         hctr::capi::vectors_of<float>(*embedding, vectors, &hctr::capi::FeatureTexts::vectors,
                                                       hctr::capi::rows_of(set, samples, given)));
  });
}

hctr_status hctr_embedding_prefetch(hctr_embedding* embedding, int64_t samples, const hctr_feature_keys* keys,
                                    int64_t* batch) {
  return call([&] {
    hctr::EmbeddingSet& set = set_of(embedding);
    expect_given(batch, "hctr_embedding_prefetch(): the pointer to the batch");
    *batch = set.prefetch(samples, hctr::capi::keys_of(*embedding, samples, keys));
  });
}

hctr_status hctr_embedding_vectors(hctr_embedding* embedding, int64_t batch, const hctr_array* vectors) {
  return call([&] {
    hctr::EmbeddingSet& set = set_of(embedding);
    set.forward(batch, hctr::capi::vectors_of<float>(*embedding, vectors, &hctr::capi::FeatureTexts::vectors,
                                                     set.vectors_of_batch(batch)));
  });
}

hctr_status hctr_embedding_reserve(hctr_embedding* embedding, int64_t samples, const int64_t* keys_of_features) {
  return call([&] {
    hctr::EmbeddingSet& set = set_of(embedding);
    expect_given(keys_of_features, "hctr_embedding_reserve(): the keys of features");
    set.reserve(samples, {keys_of_features, set.options().features.size()});
  });
}

hctr_status hctr_embedding_reserve_lookup(hctr_embedding* embedding, int64_t samples, const int64_t* keys_of_features) {
  return call([&] {
    hctr::EmbeddingSet& set = set_of(embedding);
    expect_given(keys_of_features, "hctr_embedding_reserve_lookup(): the keys of features");
    set.reserve_lookup(samples, {keys_of_features, set.options().features.size()});
  });
}

hctr_status hctr_embedding_allocated_bytes(hctr_embedding* embedding, int64_t* bytes) {
  return call([&] {
    expect_given(bytes, "hctr_embedding_allocated_bytes(): the pointer to the number");
    *bytes = set_of(embedding).allocated_bytes();
  });
}

hctr_status hctr_embedding_weight_gradients(hctr_embedding* embedding, int64_t batch, const hctr_array* gradients,
                                            const hctr_array* weights) {
  return call([&] {
    hctr::EmbeddingSet& set = set_of(embedding);
    expect_given(weights, "hctr_embedding_weight_gradients(): the weight gradients");
    std::vector<float*> to;
    for (size_t f = 0; f < set.options().features.size(); ++f) {
      const std::string what = hctr::cat("weight gradients of feature '", set.options().features[f].name, "'");
      const hctr_array& array = weights[f];
      if (array.data && array.dtype != HCTR_F32) throw hctr::Error(hctr::Kind::usage, what + " are not of f32");
      hctr::capi::check_device(set, array, what);
      to.push_back(array.data ? static_cast<float*>(const_cast<void*>(hctr::capi::contiguous(array, 1, what)))
                              : nullptr);
    }
    set.weight_gradients(batch, hctr::capi::gradients_of(*embedding, batch, gradients), to);
  });
}

hctr_status hctr_embedding_update(hctr_embedding* embedding, int64_t batch, const hctr_array* gradients,
                                  const hctr_update* update) {
  return call([&] {
    hctr::EmbeddingSet& set = set_of(embedding);
    const auto given = hctr::capi::read_struct(update, "hctr_update");
    set.update(
        batch, hctr::capi::gradients_of(*embedding, batch, gradients),
        {given.learning_rate, given.rate_on_device, given.loss_scale == 0 ? 1.0f : given.loss_scale, given.skip});
  });
}

hctr_status hctr_embedding_keys_of_batch(hctr_embedding* embedding, int64_t batch, int64_t* keys) {
  return call([&] {
    expect_given(keys, "hctr_embedding_keys_of_batch(): the counts of keys");
    const std::vector<int64_t> counts = set_of(embedding).keys_of_batch(batch);
    std::copy(counts.begin(), counts.end(), keys);
  });
}

namespace hctr::capi {
namespace {

hctr_status row_gradients(hctr_embedding* embedding, int64_t batch, const hctr_array* gradients,
                          const hctr_row_gradients* to, int64_t* rows, bool ends) {
  return call([&] {
    hctr::EmbeddingSet& set = set_of(embedding);
    expect_given(rows, "hctr_embedding_row_gradients(): the counts of rows");
    std::vector<hctr::RowGradients> of_tables;
    for (size_t t = 0; t < set.options().tables.size(); ++t) {
      const auto given = hctr::capi::read_struct(to, t, "hctr_row_gradients");
      of_tables.push_back({given.keys, given.values});
    }
    const auto counts =
        set.row_gradients(batch, hctr::capi::gradients_of(*embedding, batch, gradients), of_tables, ends);
    std::copy(counts.begin(), counts.end(), rows);
  });
}

}  // namespace
}  // namespace hctr::capi

hctr_status hctr_embedding_row_gradients(hctr_embedding* embedding, int64_t batch, const hctr_array* gradients,
                                         const hctr_row_gradients* to, int64_t* rows) {
  return hctr::capi::row_gradients(embedding, batch, gradients, to, rows, true);
}

hctr_status hctr_embedding_read_row_gradients(hctr_embedding* embedding, int64_t batch, const hctr_array* gradients,
                                              const hctr_row_gradients* to, int64_t* rows) {
  return hctr::capi::row_gradients(embedding, batch, gradients, to, rows, false);
}

hctr_status hctr_embedding_release(hctr_embedding* embedding, int64_t batch) {
  return call([&] { set_of(embedding).release(batch); });
}

hctr_status hctr_embedding_lookup(hctr_embedding* embedding, int64_t samples, const hctr_feature_keys* keys,
                                  const hctr_array* vectors) {
  return call([&] {
    hctr::EmbeddingSet& set = set_of(embedding);
    const auto given = hctr::capi::keys_of(*embedding, samples, keys);
    set.lookup(samples, given,
               hctr::capi::vectors_of<float>(*embedding, vectors, &hctr::capi::FeatureTexts::vectors,
                                             hctr::capi::rows_of(set, samples, given)));
  });
}

hctr_status hctr_embedding_updates(hctr_embedding* embedding, int64_t* updates) {
  return call([&] {
    expect_given(updates, "hctr_embedding_updates(): the pointer to the number");
    *updates = set_of(embedding).updates();
  });
}

hctr_status hctr_embedding_set_updates(hctr_embedding* embedding, int64_t updates) {
  return call([&] { set_of(embedding).set_updates(updates); });
}

hctr_status hctr_embedding_rows(hctr_embedding* embedding, const char* table, int64_t* rows) {
  return call([&] {
    expect_given(rows, "hctr_embedding_rows(): the pointer to the number");
    *rows = set_of(embedding).rows(hctr::capi::text_of(table, "the name of a table"));
  });
}

hctr_status hctr_embedding_export(hctr_embedding* embedding, const char* table, int states, int changed,
                                  hctr_rows_sink sink, void* user) {
  return call([&] {
    hctr::EmbeddingSet& set = set_of(embedding);
    const std::string name = hctr::capi::text_of(table, "the name of a table");
    expect_given(reinterpret_cast<const void*>(sink), "hctr_embedding_export(): the sink");
    const auto pass = [&](const hctr::TableRows& rows) {
      std::vector<const float*> of_states;
      for (const auto state : rows.states) of_states.push_back(state.data());
      if (sink(user, static_cast<int64_t>(rows.keys.size()), rows.keys.data(), rows.vectors.data(), of_states.data(),
               static_cast<int32_t>(of_states.size())) != 0)
        throw hctr::Error(hctr::Kind::interrupted, "the sink ended the export");
    };
    if (changed != 0)
      set.export_changed_rows(name, states != 0, pass);
    else
      set.export_rows(name, states != 0, pass);
  });
}

hctr_status hctr_embedding_note_exported(hctr_embedding* embedding) {
  return call([&] { set_of(embedding).note_exported(); });
}

hctr_status hctr_embedding_import(hctr_embedding* embedding, const char* table, const hctr_array* keys,
                                  const hctr_array* vectors, const hctr_array* states, int32_t state_count) {
  return call([&] {
    hctr::EmbeddingSet& set = set_of(embedding);
    expect_given(keys, "hctr_embedding_import(): the keys");
    const std::string what = "imported keys";
    if (keys->dtype != HCTR_I64) throw hctr::Error(hctr::Kind::usage, what + " are not of i64");
    hctr::TableRows rows;
    rows.keys = {static_cast<const int64_t*>(hctr::capi::contiguous(*keys, 1, what)),
                 static_cast<size_t>(keys->shape[0])};
    const auto floats = [&](const hctr_array& array, const std::string& name) {
      if (array.dtype != HCTR_F32 || array.gpu >= 0)
        throw hctr::Error(hctr::Kind::usage, name + " are not f32 in host memory");
      return std::span(static_cast<const float*>(hctr::capi::contiguous(array, array.dims, name)),
                       static_cast<size_t>(hctr::capi::elements_of(array, name)));
    };
    if (vectors && vectors->data) rows.vectors = floats(*vectors, "imported vectors");
    if (state_count > 0) expect_given(states, "hctr_embedding_import(): the states");
    for (int32_t s = 0; s < state_count; ++s) rows.states.push_back(floats(states[s], "imported states"));
    set.import_rows(hctr::capi::text_of(table, "the name of a table"), rows);
  });
}

hctr_status hctr_embedding_save(hctr_embedding* embedding, const char* folder) {
  return call([&] { set_of(embedding).save(hctr::capi::text_of(folder, "the folder")); });
}

hctr_status hctr_embedding_load(hctr_embedding* embedding, const char* folder) {
  return call([&] { set_of(embedding).load(hctr::capi::text_of(folder, "the folder")); });
}
