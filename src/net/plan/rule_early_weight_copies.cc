// Transposed copies of weights are written before the look-up begins.
#include "net/plan/step_choices.h"

namespace hctr {

const StepRule kEarlyWeightCopies = {
    .name = "weight copies before the look-up",
    .reason =
        "Those of the first layers come before the look-up is queued, the others on the layers stream beside it. When "
        "the update wrote them, nothing of the next step began before that kernel had ended.",
    .gain = "H100, DLRM in TF32 at 512 samples: 7 of 175 us",
    .decide = [](const StepFacts& facts, StepChoices& choices) {
      return choices.copies_early = choices.layers_aside && facts.any_weight_copies();
    }};

}  // namespace hctr
