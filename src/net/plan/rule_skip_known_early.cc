// In f16 on one GPU, the overflow check finishes before the last wgrads and decides whether the step is skipped.
#include <algorithm>

#include "net/plan/step_choices.h"

namespace hctr {

const StepRule kSkipKnownEarly = {
    .name = "skip known before the wgrads",
    .reason =
        "A product of f16 in f32 is finite if its operands are. So operands are searched, most of them where they are "
        "read anyhow, and tables are updated beside the products.",
    .gain = "H100, DLRM in fp16: 12 us at 2,048 samples, 3 at 512",
    .decide = [](const StepFacts& facts, StepChoices& choices) {
      return choices.skip_known_early = facts.may_skip && facts.alone() && facts.recorded_whole &&
                                        choices.products_first &&
                                        std::ranges::all_of(facts.layers, &LayerFacts::finite_products);
    }};

}  // namespace hctr
