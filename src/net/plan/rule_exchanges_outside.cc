// Moves exchanges between hosts out of the recording, between two recorded pieces of a step.
#include "net/plan/step_choices.h"

namespace hctr {

const StepRule kExchangesOutside = {
    .name = "exchanges run outside of the recorded step",
    .reason =
        "The sizes of messages between hosts depend on the batch. Messages of the maximum size, which could be "
        "recorded, take longer than exchanges between two recorded pieces.",
    .gain = "two H100: with sharded slots, messages of the maximum size have twice as many bytes",
    .decide = [](const StepFacts& facts, StepChoices& choices) { return choices.outside = !facts.recorded_whole; }};

}  // namespace hctr
