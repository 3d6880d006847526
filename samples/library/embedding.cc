// Embedding tables in a custom training loop: vectors in, gradients back.
#include <hctr/embedding.h>

#include <cstdio>
#include <vector>

int main() {
  hctr::EmbeddingTableOptions items{.name = "items", .dim = 4};  // any 64-bit keys; a row is added for each new key
  items.optimizer = hctr::EmbeddingOptimizer::torch(hctr::EmbeddingOptimizer::Rule::adagrad);
  hctr::EmbeddingSet set({.tables = {items}, .features = {{"bought", "items", hctr::Pooling::mean}}});

  const std::vector<int64_t> keys = {17, 1'000'000'000'007, 17}, offsets = {0, 2, 3};  // the keys of two samples
  std::vector<float> vectors(2 * 4), gradients(2 * 4);
  const hctr::FeatureKeys batch_keys{keys.data(), hctr::ElementType::i64, 3, offsets.data()};
  const hctr::FeatureVectors<float> to{vectors.data()};
  const hctr::FeatureVectors<const float> from{gradients.data()};
  for (int step = 0; step < 200; ++step) {
    const auto batch = set.forward(2, {&batch_keys, 1}, {&to, 1});
    // gradient of the loss (vector - 1)^2 / 2
    for (size_t i = 0; i < vectors.size(); ++i) gradients[i] = vectors[i] - 1;
    set.update(batch, {&from, 1}, {.learning_rate = 0.1f});
  }
  std::printf("%lld rows; the first element is %.3f\n", static_cast<long long>(set.rows("items")), vectors[0]);
}
