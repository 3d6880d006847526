// Steps and look-ups of an EmbeddingSet, by the C interface.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "capi/array.h"
#include "capi/call.h"
#include "capi/embedding_arrays.h"
#include "capi/embedding_handle.h"
#include "capi/embedding_settings.h"
#include "core/base/expect.h"
#include "hctr/embedding.h"

using hctr::capi::call;
using hctr::capi::expect_given;
using hctr::capi::set_of;

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
                         hctr::capi::vectors_of(*embedding, vectors, hctr::capi::rows_of(set, samples, given)));
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

hctr_status hctr_embedding_row_numbers(hctr_embedding* embedding, int64_t batch, int32_t* const* numbers,
                                       int64_t* removals) {
  return call([&] {
    hctr::EmbeddingSet& set = set_of(embedding);
    expect_given(numbers, "hctr_embedding_row_numbers(): the row numbers");
    expect_given(removals, "hctr_embedding_row_numbers(): the pointer to the number of removals");
    *removals = set.row_numbers(batch, {numbers, set.options().features.size()});
  });
}

hctr_status hctr_embedding_prefetch_rows(hctr_embedding* embedding, int64_t samples, const hctr_feature_keys* keys,
                                         const int32_t* const* numbers, int64_t removals, int64_t* batch) {
  return call([&] {
    hctr::EmbeddingSet& set = set_of(embedding);
    expect_given(numbers, "hctr_embedding_prefetch_rows(): the row numbers");
    expect_given(batch, "hctr_embedding_prefetch_rows(): the pointer to the batch");
    *batch = set.prefetch(samples, hctr::capi::keys_of(*embedding, samples, keys),
                          {numbers, set.options().features.size()}, removals);
  });
}

hctr_status hctr_embedding_vectors(hctr_embedding* embedding, int64_t batch, const hctr_array* vectors) {
  return call([&] {
    hctr::EmbeddingSet& set = set_of(embedding);
    set.forward(batch, hctr::capi::vectors_of(*embedding, vectors, set.vectors_of_batch(batch)));
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
    set.lookup(samples, given, hctr::capi::vectors_of(*embedding, vectors, hctr::capi::rows_of(set, samples, given)));
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

hctr_status hctr_embedding_save(hctr_embedding* embedding, const char* folder) {
  return call([&] { set_of(embedding).save(hctr::capi::text_of(folder, "the folder")); });
}

hctr_status hctr_embedding_load(hctr_embedding* embedding, const char* folder) {
  return call([&] { set_of(embedding).load(hctr::capi::text_of(folder, "the folder")); });
}
