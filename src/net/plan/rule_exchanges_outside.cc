// Between hosts, exchanges are called between two recorded pieces of a step.
#include "net/plan/step_choices.h"

namespace hctr {

const StepRule kExchangesOutside = {
    .name = "exchanges outside of the recording",
    .reason =
        "The sizes of what hosts exchange are known with the batch only. Messages of the largest size, which a "
        "recording could hold, take longer than exchanges between two recorded pieces.",
    .gain = "two H100: keys that are spread make messages of twice the bytes at their largest size",
    .decide = [](const StepFacts& facts, StepChoices& choices) { return choices.outside = !facts.recorded_whole; }};

}  // namespace hctr
