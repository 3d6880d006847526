// The handle of an EmbeddingSet.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capi/call.h"
#include "hctr/embedding.h"

namespace hctr::capi {

/// The names of a feature's arrays in error messages. Made once, because a step passes hundreds of arrays.
struct FeatureTexts {
  std::string keys, offsets, weights, vectors, gradients;
  int64_t dim = 0;
};
std::vector<FeatureTexts> texts_of(const EmbeddingOptions&);

}  // namespace hctr::capi

struct hctr_embedding {
  explicit hctr_embedding(const hctr::EmbeddingOptions& options)
      : set(options), texts(hctr::capi::texts_of(set.options())) {}
  hctr::EmbeddingSet set;
  std::vector<hctr::capi::FeatureTexts> texts;  // one element per feature
};

namespace hctr::capi {

inline EmbeddingSet& set_of(hctr_embedding* embedding) {
  expect_given(embedding, "the hctr_embedding");
  return embedding->set;
}

/// Converts a caller's text. Errors: Error(usage) naming `what` if `text` is null.
inline std::string text_of(const char* text, const char* what) {
  expect_given(text, what);
  return text;
}

}  // namespace hctr::capi
