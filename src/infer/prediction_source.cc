#include "infer/prediction_source.h"

#include <algorithm>

namespace hctr {

Source prediction_source(const Config& config) {
  Source source = evaluation_source(config.data);
  source.labels_optional = true;
  for (const SparseInput& input : config.data.sparse) {
    const bool read =
        std::any_of(config.embeddings.begin(), config.embeddings.end(),
                    [&](const EmbeddingEntry& embedding) { return embedding.section.bottom == input.top; });
    source.slots_optional.insert(source.slots_optional.end(), static_cast<size_t>(int64_t{input.slot_num}), !read);
  }
  return source;
}

Source prediction_source(const Config& config, const std::string& path) {
  Source source = prediction_source(config);
  source.path = path;
  source.num_samples = 0;
  return source;
}

}  // namespace hctr
