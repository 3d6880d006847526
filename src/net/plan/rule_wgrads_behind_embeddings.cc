// With several ranks, runs the last wgrad GEMMs after the gradients of embeddings.
#include <algorithm>
#include <limits>

#include "net/plan/step_choices.h"

namespace hctr {
namespace {

/// Selects up to `most` wgrad GEMMs to defer: the last ones that precede the backward pass of the first reader of
/// embeddings. If the wgrads of a layer read memory shared with other layers, only wgrads after that layer in backward
/// order are selected. Returns the first layer, in backward order, with a selected wgrad; none if there is none.
std::optional<size_t> products_before_embeddings(const StepFacts& facts, size_t most) {
  std::optional<size_t> earliest;
  size_t products = 0;
  for (size_t n = facts.first_reader() + 1; n < facts.layers.size() && products < most; ++n) {
    const LayerFacts& layer = facts.layers[n];
    if (!layer.weight_gradients || layer.weights_in_backward) continue;
    if (layer.transient) break;
    if (!layer.matrix_gradient) continue;
    earliest = n;
    ++products;
  }
  return earliest;
}

bool hold(const StepFacts& facts, StepChoices& choices) {
  if (facts.alone()) return false;
  // Kernels that send gradients occupy multiprocessors that the following GEMMs need; copy engines do not.
  const bool by_engines = std::ranges::any_of(facts.tables, &TableFacts::sends_by_engines);
  choices.held_from = products_before_embeddings(facts, by_engines ? std::numeric_limits<size_t>::max() : 1);
  return choices.held_from.has_value();
}

}  // namespace

const StepRule kWgradsBehindEmbeddings = {
    .name = "wgrads start after the embedding gradients",
    .reason =
        "Another stream sends embedding gradients to other ranks, a few microseconds after the kernel that "
        "computes them. Without the rule the next GEMM would occupy all multiprocessors by then.",
    .gain =
        "two H200, half precision at 16,384: DLRM 1.099 to 1.077 ms, DCN 0.673 to 0.658; with copy engines 1.077 to "
        "1.027",
    .decide = hold};

}  // namespace hctr
