// In f16 on one GPU, finishes the overflow check before the last wgrads; the check decides whether the step is skipped.
#include <algorithm>

#include "net/plan/step_choices.h"

namespace hctr {

const StepRule kSkipKnownEarly = {
    .name = "overflow check runs before the wgrads",
    .reason =
        "A GEMM of f16 operands with an f32 result is finite if its operands are finite. The overflow check "
        "therefore reads operands, mostly in kernels that read them anyway, and table updates overlap the GEMMs.",
    .gain = "H100, DLRM in fp16: saves 12 us at 2,048 samples, 3 us at 512",
    .decide = [](const StepFacts& facts, StepChoices& choices) {
      return choices.skip_known_early = facts.may_skip && facts.alone() && facts.recorded_whole &&
                                        choices.products_first &&
                                        std::ranges::all_of(facts.layers, &LayerFacts::finite_products);
    }};

}  // namespace hctr
