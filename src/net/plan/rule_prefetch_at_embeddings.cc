// The next batch is looked up and sorted once the gradients of embeddings are complete.
#include "net/plan/step_choices.h"

namespace hctr {

const StepRule kPrefetchAtEmbeddings = {
    .name = "preparation behind the gradients of embeddings",
    .reason =
        "Concurrent with the products in front, each of which needs nearly all multiprocessors, a block of the sort "
        "holds "
        "one up by as long as it runs. Behind them few large products are left, where those of weights come last. "
        "Elsewhere the event costs more than it gains. It is recorded on a stream that delays nothing.",
    .gain = "H100, DLRM, half precision at 2,048: 0.213 to 0.203 ms",
    .decide = [](const StepFacts& facts, StepChoices& choices) {
      return choices.prefetch_at_embeddings = choices.layers_aside && facts.computes_before_embeddings();
    }};

}  // namespace hctr
