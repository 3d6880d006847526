// Writes transposed copies of weights before the look-up begins.
#include "net/plan/step_choices.h"

namespace hctr {

const StepRule kEarlyWeightCopies = {
    .name = "weight copies before the look-up",
    .reason =
        "Weight copies for the first layers are queued before the look-up, all other copies concurrently on the "
        "layers stream. If the update wrote the copies, the next step could not begin before the update kernel has "
        "ended.",
    .gain = "H100, DLRM in TF32 at 512 samples: saves 7 of 175 us",
    .decide = [](const StepFacts& facts, StepChoices& choices) {
      return choices.copies_early = choices.layers_aside && facts.any_weight_copies();
    }};

}  // namespace hctr
