// In f16 on one GPU, or on two that add dense gradients in each other's memory, finishes the overflow check before the
// last wgrads; the check decides whether the step is skipped.
#include <algorithm>

#include "net/plan/step_choices.h"

namespace hctr {
namespace {

bool on_one(const StepFacts& facts) {
  return facts.alone() && std::ranges::all_of(facts.layers, &LayerFacts::finite_products);
}

/// On two ranks, all wgrads must be deferred, because large GEMMs would not leave the backward pass otherwise. The
/// decision to skip uses the communicator, so no all-reduce of replicated rows may be in progress.
bool on_two(const StepFacts& facts, const StepChoices& choices) {
  return facts.gpu && facts.two_may_skip_early && !facts.penalty && !facts.fp8 && choices.element_tables.empty() &&
         std::ranges::none_of(facts.tables, &TableFacts::replicated_rows) &&
         std::ranges::none_of(facts.tables, &TableFacts::on_disk) &&
         std::ranges::any_of(facts.layers, &LayerFacts::sums_over_ranks) &&
         std::ranges::all_of(facts.layers,
                             [](const LayerFacts& layer) { return layer.may_defer_wgrads && !layer.transient; });
}

}  // namespace

const StepRule kSkipKnownEarly = {
    .name = "overflow check runs before the wgrads",
    .reason =
        "A GEMM of f16 operands with an f32 result is finite if its operands are finite. The overflow check "
        "therefore reads operands, mostly in kernels that read them anyway, and table updates overlap the GEMMs.",
    .gain = "H100, DLRM in fp16: saves 12 us at 2,048 samples, 3 us at 512",
    .decide = [](const StepFacts& facts, StepChoices& choices) {
      return choices.skip_known_early = facts.may_skip && facts.recorded_whole && choices.products_first &&
                                        (on_one(facts) || on_two(facts, choices));
    }};

}  // namespace hctr
