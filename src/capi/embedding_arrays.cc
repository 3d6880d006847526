#include "capi/embedding_arrays.h"

#include <utility>

#include "capi/array.h"
#include "capi/call.h"
#include "core/base/expect.h"

namespace hctr::capi {
namespace {

/// Views of the vectors of each feature. `text`: selects their name in error messages. `rows`: the expected number of
/// vectors of each feature.
template <class T>
std::vector<FeatureVectors<T>> views_of(const hctr_embedding& embedding, const hctr_array* arrays,
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
        throw Error(Kind::usage, cat(offsets, " have ", from.offsets.shape[0], " elements, expected ", samples + 1,
                                     " for ", samples, " samples"));
      check_device(set, from.offsets, offsets);
    }
    if (from.weights.data) {
      to.weights = static_cast<const float*>(contiguous(from.weights, 1, weights));
      if (from.weights.dtype != HCTR_F32 || from.weights.shape[0] != to.count)
        throw Error(Kind::usage, cat(weights, " have ", from.weights.shape[0], " elements of type ", from.weights.dtype,
                                     ", expected ", to.count, " elements of f32"));
      check_device(set, from.weights, weights);
    }
    all.push_back(to);
  }
  return all;
}

std::vector<FeatureVectors<float>> vectors_of(const hctr_embedding& embedding, const hctr_array* arrays,
                                              const std::vector<int64_t>& rows) {
  return views_of<float>(embedding, arrays, &FeatureTexts::vectors, rows);
}

std::vector<FeatureVectors<const float>> gradients_of(const hctr_embedding& embedding, int64_t batch,
                                                      const hctr_array* arrays) {
  return views_of<const float>(embedding, arrays, &FeatureTexts::gradients, embedding.set.vectors_of_batch(batch));
}

std::vector<int64_t> rows_of(const EmbeddingSet& set, int64_t samples, const std::vector<FeatureKeys>& keys) {
  std::vector<int64_t> rows;
  for (size_t f = 0; f < keys.size(); ++f)
    rows.push_back(set.options().features[f].pooling == Pooling::none ? keys[f].count : samples);
  return rows;
}

}  // namespace hctr::capi
