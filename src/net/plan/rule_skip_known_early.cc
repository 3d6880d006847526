// In f16 on one GPU, finishes the overflow check before the last wgrads; the check decides whether the step is skipped.
#include <algorithm>

#include "net/plan/step_choices.h"

namespace hctr {

const StepRule kSkipKnownEarly = {
    .name = "skip known before the wgrads",
    .reason =
        "A GEMM of f16 operands in f32 is finite if its operands are. So the overflow check reads operands, most of "
        "them where they are read anyway, and table updates overlap the GEMMs.",
    .gain = "H100, DLRM in fp16: 12 us at 2,048 samples, 3 at 512",
    .decide = [](const StepFacts& facts, StepChoices& choices) {
      return choices.skip_known_early = facts.may_skip && facts.alone() && facts.recorded_whole &&
                                        choices.products_first &&
                                        std::ranges::all_of(facts.layers, &LayerFacts::finite_products);
    }};

}  // namespace hctr
