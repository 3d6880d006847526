// At the end of the backward pass, queues wgrad GEMMs before bias gradients if a layer with weights runs before the
// first reader of an embedding.
#include "net/plan/step_choices.h"

namespace hctr {

const StepRule kProductsFirst = {
    .name = "GEMMs before sums at the end",
    .reason =
        "If embedding gradients are complete before those of the first layers, GEMMs need whole multiprocessors and "
        "sums overlap them. Otherwise sums come first, and tables, whose updates then take longest, get "
        "multiprocessors before GEMMs.",
    .gain = "H100, DLRM in TF32 at 512 samples: 10 us; if tables wait for neither, Wide & Deep would lose 7",
    .decide = [](const StepFacts& facts, StepChoices& choices) {
      return choices.products_first = facts.computes_before_embeddings();
    }};

}  // namespace hctr
