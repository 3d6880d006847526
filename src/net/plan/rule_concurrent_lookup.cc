// Runs look-ups on the exchange stream, concurrently with layers that need no vectors.
#include "net/plan/step_choices.h"

namespace hctr {

const StepRule kConcurrentLookup = {
    .name = "look-up runs concurrently with the first layers",
    .reason =
        "Layers before the first reader of an embedding, such as DLRM's bottom MLP, leave memory bandwidth for the "
        "look-up. On several ranks the exchange of vectors overlaps these layers anyway.",
    .gain =
        "H100, DLRM in fp16 at 16,384 samples: look-up and layers take 123 to 131 us together, instead of 110 "
        "plus 53 us",
    .decide = [](const StepFacts& facts, StepChoices& choices) {
      return choices.lookups_aside = facts.alone() && !facts.tables.empty() && facts.computes_before_embeddings();
    }};

}  // namespace hctr
