// The handle of an EmbeddingSet.
#pragma once

#include <string>

#include "capi/call.h"
#include "hctr/embedding.h"

struct hctr_embedding {
  explicit hctr_embedding(const hctr::EmbeddingOptions& options) : set(options) {}
  hctr::EmbeddingSet set;
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
